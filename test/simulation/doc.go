// Package simulation executes random runs with the real workflow, activities, run directory and store, and a simulated
// machine, schedule and operator. A seed decides all of a run, so a failure prints the seed that shows it again.
//
// A run is a testing/synctest bubble that contains the SDK's test environment. The environment and the bubble fit
// together with these rules:
//
//   - A goroutine that waits for a mutex, or in a system call, does not count as blocked. So no step waits for its turn
//     while its goroutine holds a mutex that others need (steps on the folder of the store), and files are in memory.
//     Locks of directories are polled with timers, and agents are goroutines.
//   - The environment has a separate clock, which jumps to the next timer when no activity runs. It would jump to the
//     end of the workflow while a run waits for its operator, so the operator is a timer there.
//   - A goroutine that is left at the end is an error of the bubble. So a lost delivery is repeated by the simulation,
//     except for calls: the environment leaves a goroutine behind if a workflow ends between two attempts. No run is
//     terminated then.
//   - Two timers that fire at the same time wake their goroutines in any order. So each turn takes an odd time.
//   - The files of a working tree are stored at the same time, in any order, so their steps differ between executions.
//   - The folder has always the same name: the journal contains it, and digests of that are names of files.
//
// Each activity waits for its turn when it begins, and before each step on the disk (internal/disk). A supervisor
// with its agent waits before each of its steps. The scheduler chooses one of them when all others are blocked. Before
// that a disturbance may happen: a worker crashes (in the middle of a write, too), a delivery is lost whose worker
// continues, a supervisor is killed, a message arrives (signal or Update), the disk is full or the store away for some
// writes, some reads of the store fail, or the workflow is terminated or reset. Continue-as-new,
// epochs and resets are new environments on the same disk: a reset executes one of the executions of its epoch from
// its input. After a crash the next step ends its goroutine.
// Only what internal/disk does not see, such as the removal of scratch directories, can happen before that.
//
// After each written batch the journal must have grown without a gap, and meta.json must be the fold of its events.
// After a crash both state files must be readable and complete lines must be events. At the end the invariants of
// test/e2e apply, except that the gate of the host is off and that only the artifact or tree is compared with an
// undisturbed run, and the check of the directory.
//
// A failure is shrunk: disturbances are removed in halves as long as the run still fails. The choices of the schedule,
// of each disturbance and of each agent come from separate sources of the seed, so that what is left happens as before.
// pgregory.net/rapid shrinks the stream of all choices instead. Without one of them every later one has another
// meaning, and the run seldom fails again.
//
// Not covered: workflows of notices, git, screenshots, and directories that move. In TestRealServer the
// same runs have a real server, which executes history again, and real processes; there the seed does not decide all.
package simulation
