#include "base/mapping.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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

Result<Mapping> Mapping::map(int fd, std::size_t size, int protection, int flags) {
  void* address = ::mmap(nullptr, size, protection, flags, fd, 0);
  if (address == MAP_FAILED)
    return fail(ErrorCode::no_memory, "cannot map memory; free some or lower the frame count", errno);
  return Mapping(address, size);
}

Result<Mapping> Mapping::anonymous(std::size_t size) {
  return map(-1, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
}

Result<Mapping> Mapping::of_fd(int fd, std::size_t size) {
  return map(fd, size, PROT_READ | PROT_WRITE, MAP_SHARED);
}

Result<Mapping> Mapping::of_stranger(int fd, std::size_t size, Access access) {
  struct statfs where{};
  struct stat what{};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  const bool memory = ::fstatfs(fd, &where) == 0 && where.f_type == TMPFS_MAGIC;
  const bool fits =
      ::fstat(fd, &what) == 0 && what.st_size >= 0 && static_cast<std::size_t>(what.st_size) == size;
  if (!memory || !fits || seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(ErrorCode::invalid_argument,
                "what another process gave is not sealed memory of the size it said");
  }
  return map(fd, size, access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED);
}

Result<void> Mapping::lay_over(MutableBytes part, int fd) const {
  void* address = ::mmap(part.data(), part.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (address == MAP_FAILED)
    return fail(ErrorCode::no_memory, "cannot map memory; free some or lower the frame count", errno);
  return {};
}

Result<int> open_memfd(const char* name, std::size_t size) {
  auto fd = open_memfd_to_show(name, size);
  if (fd && ::fcntl(*fd, F_ADD_SEALS, F_SEAL_SEAL) != 0) {
    const int error = errno;
    ::close(*fd);
    return fail(ErrorCode::system, "cannot seal a memfd", error);
  }
  return fd;
}

Result<void> seal_against_writers(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
    return fail(ErrorCode::system, "cannot seal a memfd", errno);
  return {};
}

Result<int> open_memfd_to_show(const char* name, std::size_t size) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail(ErrorCode::system, "cannot make a memfd", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return fail(ErrorCode::no_memory, "cannot size a memfd; free memory or lower the frame count", errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return fail(ErrorCode::system, "cannot seal a memfd", errno);
  }
  return fd.release();
}

}  // namespace netchannel
