// What is closed or unmapped by its owner has one owner.
#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

namespace netchannel {

UniqueFd descriptor_copied(UniqueFd& fd) {
#ifdef MUST_NOT_COMPILE
  return fd;  // error: deleted
#else
  return std::move(fd);
#endif
}

UniqueFd descriptor_from_a_number() {
#ifdef MUST_NOT_COMPILE
  return 3;  // error: convert|conversion|explicit
#else
  return UniqueFd(3);
#endif
}

Mapping mapping_copied(Mapping& mapping) {
#ifdef MUST_NOT_COMPILE
  return mapping;  // error: deleted
#else
  return std::move(mapping);
#endif
}

}  // namespace netchannel
