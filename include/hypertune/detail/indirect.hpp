// Indirect: a value that the header which holds it does not know.
#pragma once

#include <memory>
#include <utility>

namespace hypertune::inline v0::detail {

/// A T, copied with what holds it, or none. Only who makes one, or looks into it, needs to know more of T than its
/// name.
template <class T>
class Indirect {
 public:
  Indirect() = default;
  // Not by make_shared(), which brings another 50 functions for each T and way to make one.
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
  std::shared_ptr<T> self_;  // never shared: it knows how to destroy what is not known here
  std::shared_ptr<T> (*copy_)(const T&) = nullptr;
};

}  // namespace hypertune::inline v0::detail
