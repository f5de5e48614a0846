#include "api/keeper.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "api/host_impl.hpp"
#include "device/clock.hpp"

namespace netchannel {

Result<std::unique_ptr<Keeper>> Keeper::start(HostImpl& host) {
  std::unique_ptr<Keeper> keeper(new Keeper(host));
  keeper->stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!keeper->stop_) return fail(ErrorCode::system, "cannot make an eventfd for the keeper thread", errno);
  // The program's signals are the program's threads' business.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    keeper->thread_ = std::thread([k = keeper.get()] { k->run(); });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return fail(ErrorCode::system, "cannot start the keeper thread", error.code().value());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return keeper;
}

Keeper::~Keeper() {
  stopping_ = true;
  owner_asleep_ = false;
  owner_asleep_.notify_one();
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

std::unique_lock<std::mutex> Keeper::hold() {
  std::unique_lock lock(mutex_);
  owner_seen_.store(device::monotonic_now().ns, std::memory_order_relaxed);
  return lock;
}

void Keeper::asleep() {
  owner_asleep_.store(true, std::memory_order_relaxed);
  mutex_.unlock();
}

void Keeper::awake() {
  mutex_.lock();
  owner_seen_.store(device::monotonic_now().ns, std::memory_order_relaxed);
  owner_asleep_.store(false, std::memory_order_release);
  owner_asleep_.notify_one();
}

bool Keeper::owner_is_away() const {
  const Instant seen{owner_seen_.load(std::memory_order_relaxed)};
  return !owner_asleep_.load(std::memory_order_relaxed) && device::monotonic_now() - seen >= kPatience;
}

void Keeper::run() {
  while (!stopping_) {
    owner_asleep_.wait(true);
    sleep(kForever, false);
    if (!stopping_ && owner_is_away()) stand_in();
  }
}

// Until the owner is back. The lock is free between two turns, so that it can be.
void Keeper::stand_in() {
  while (!stopping_ && owner_is_away()) {
    Instant deadline{};
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return;
      host_.look_closely = true;
      host_.counters.add(Counter::host_keeper_turns);
      if (host_.poll() || !host_.prepare_sleep()) continue;
      deadline = host_.next_deadline();
    }
    sleep(deadline, true);
  }
}

// Until then or for kPatience; or, on the device, until something arrives.
void Keeper::sleep(Instant until, bool on_device) {
  std::array<pollfd, 8> fds;
  std::size_t n = 0;
  fds[n++] = {stop_.get(), POLLIN, 0};
  if (on_device) {
    for (const int fd : host_.sleep_fds) fds[n++] = {fd, POLLIN, 0};
  }
  const Instant now = device::monotonic_now();
  const Duration time = std::clamp<Duration>(earlier(until, now + kPatience) - now, Duration{0}, kPatience);
  const timespec timeout{0, time.count()};
  (void)::ppoll(fds.data(), n, &timeout, nullptr);
}

}  // namespace netchannel
