#include "base/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/unique_fd.hpp"

namespace netchannel {

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

Result<Mapping> Mapping::map(int fd, std::size_t size, int flags) {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (address == MAP_FAILED)
    return fail(ErrorCode::no_memory, "cannot map memory; free some or lower the frame count", errno);
  return Mapping(address, size);
}

Result<Mapping> Mapping::anonymous(std::size_t size) { return map(-1, size, MAP_SHARED | MAP_ANONYMOUS); }

Result<Mapping> Mapping::of_fd(int fd, std::size_t size) { return map(fd, size, MAP_SHARED); }

Result<int> open_memfd(const char* name, std::size_t size) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail(ErrorCode::system, "cannot make a memfd", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return fail(ErrorCode::no_memory, "cannot size a memfd; free memory or lower the frame count", errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(ErrorCode::system, "cannot seal a memfd", errno);
  }
  return fd.release();
}

}  // namespace netchannel
