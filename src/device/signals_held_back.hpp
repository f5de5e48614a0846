// The kernel gives up verifying a BPF program (EAGAIN, bpf_check()) when a signal is pending: a program with
// a timer that is shorter than the verification could never load. Signals come when this is gone.
#pragma once

#include <signal.h>

namespace netchannel::device {

class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeldBack() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace netchannel::device
