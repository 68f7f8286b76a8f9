// Indirect: a value of a type that is incomplete in the header that contains it.
#pragma once

#include <utility>

namespace hypertune::inline v0::detail {

/// The part of Indirect that does not depend on the type, so that it is compiled once.
class ErasedIndirect {
 public:
  ErasedIndirect() = default;
  ErasedIndirect(const ErasedIndirect& other) : value_(other.copy()), type_(other.type_) {}
  ErasedIndirect(ErasedIndirect&& other) noexcept : value_(std::exchange(other.value_, nullptr)), type_(other.type_) {}
  ErasedIndirect& operator=(ErasedIndirect other) noexcept {
    std::swap(value_, other.value_);
    std::swap(type_, other.type_);
    return *this;
  }
  ~ErasedIndirect() {
    if (value_ != nullptr) type_->destroy(value_);
  }

  explicit operator bool() const { return value_ != nullptr; }

 protected:
  struct Type {
    void* (*copy)(const void*);
    void (*destroy)(void*);
  };
  ErasedIndirect(void* value, const Type* type) : value_(value), type_(type) {}
  void* copy() const { return value_ == nullptr ? nullptr : type_->copy(value_); }

  void* value_ = nullptr;
  const Type* type_ = nullptr;
};

/// A T that is copied with its container, or none. Only code that creates or uses the T needs its definition.
template <class T>
class Indirect : public ErasedIndirect {
 public:
  Indirect() = default;
  explicit Indirect(T value) : ErasedIndirect(new T(std::move(value)), &type) {}

  T& operator*() { return *static_cast<T*>(value_); }
  const T& operator*() const { return *static_cast<const T*>(value_); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

  /// The value, which is made with its defaults if there is none.
  T& made() {
    if (value_ == nullptr) *this = Indirect(T());
    return **this;
  }
  /// The value, or one with all defaults if there is none.
  const T& or_default() const {
    static const T none = T();
    return value_ == nullptr ? none : **this;
  }

 private:
  static constexpr Type type{[](const void* value) -> void* { return new T(*static_cast<const T*>(value)); },
                             [](void* value) { delete static_cast<T*>(value); }};
};

}  // namespace hypertune::inline v0::detail
