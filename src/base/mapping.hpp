// A range of mapped memory that is unmapped when its owner goes away.
#pragma once

#include <cstddef>
#include <span>

#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"

namespace netchannel {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Anonymous and MAP_SHARED (so that a fork cannot split what the kernel and the program see of pinned
  // memory); page-aligned, zeroed, untouched: it costs memory only where it is used.
  static Result<Mapping> anonymous(std::size_t size);
  // The first `size` bytes of a memfd, shared.
  static Result<Mapping> of_fd(int fd, std::size_t size);

  MutableBytes bytes() const { return {static_cast<std::byte*>(address_), size_}; }
  std::size_t size() const { return size_; }

 private:
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  static Result<Mapping> map(int fd, std::size_t size, int flags);
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

// A sealed-against-shrinking memfd of that size, close-on-exec, for memory that two processes share.
Result<int> open_memfd(const char* name, std::size_t size);

}  // namespace netchannel
