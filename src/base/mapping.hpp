// A range of mapped memory that is unmapped when its owner goes away.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // The same of a memfd that another process has given: only if it is memory, has exactly that size and can
  // never shrink, so that no access faults whatever the other does. Errors: invalid_argument, no_memory.
  enum class Access : std::uint8_t { read, read_write };
  static Result<Mapping> of_stranger(int fd, std::size_t size, Access access);

  // Puts the first bytes of a memfd, shared, in the place of a part of this mapping; page-aligned.
  Result<void> lay_over(MutableBytes part, int fd) const;

  explicit operator bool() const { return address_ != nullptr; }
  MutableBytes bytes() const { return {static_cast<std::byte*>(address_), size_}; }
  std::size_t size() const { return size_; }

 private:
  Mapping(void* address, std::size_t size) : address_(address), size_(size) {}
  static Result<Mapping> map(int fd, std::size_t size, int protection, int flags);
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

// A sealed-against-shrinking memfd of that size, close-on-exec, for memory that two processes share.
Result<int> open_memfd(const char* name, std::size_t size);
// The same, still open to one more seal: nobody maps it for writing any more, but for those who have it
// mapped.
Result<int> open_memfd_to_show(const char* name, std::size_t size);
Result<void> seal_against_writers(int fd);

}  // namespace netchannel
