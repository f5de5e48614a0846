// The two signals that measuring loops live with. Interrupts (SIGINT, SIGTERM) set a flag that every loop
// looks at, so that what was measured until then is still reported. The ticker (SIGALRM every 20 ms) does
// nothing but end a blocking receive, so that a loop that blocks as a plain program does, without a deadline,
// still keeps its deadlines.
#pragma once

namespace netchannel::bench {

// For the process and what it forks. A second interrupt kills as usual.
void catch_interrupts();
bool interrupted() noexcept;

// Not inherited by fork: start it in each process that measures.
void start_ticker();
void stop_ticker();

}  // namespace netchannel::bench
