// Indirect: a value of a type that is incomplete in the header that contains it.
#pragma once

#include <memory>
#include <utility>

namespace hypertune::inline v0::detail {

/// A T that is copied with its container, or none. Only code that creates or uses the T needs its definition.
template <class T>
class Indirect {
 public:
  Indirect() = default;
  // make_shared() is not used, because it adds another 50 functions for each T and each way to create one.
  explicit Indirect(T value)
      : self_(new T(std::move(value))), copy_([](const T& v) { return std::shared_ptr<T>(new T(v)); }) {}
  Indirect(const Indirect& other) : self_(other.self_ ? other.copy_(*other.self_) : nullptr), copy_(other.copy_) {}
  Indirect(Indirect&&) noexcept = default;
  Indirect& operator=(Indirect other) noexcept {
    self_ = std::move(other.self_);
    copy_ = other.copy_;
    return *this;
  }

  explicit operator bool() const { return self_ != nullptr; }
  T& operator*() { return *self_; }
  const T& operator*() const { return *self_; }
  T* operator->() { return self_.get(); }
  const T* operator->() const { return self_.get(); }

 private:
  std::shared_ptr<T> self_;  // never shared; it can destroy a type that is incomplete here
  std::shared_ptr<T> (*copy_)(const T&) = nullptr;
};

}  // namespace hypertune::inline v0::detail
