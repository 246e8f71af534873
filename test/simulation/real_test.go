package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/histories"
	"github.com/passbook-run/passbook/test/invariants"
	"github.com/passbook-run/passbook/workflows/contract"
)

// realRun is a run with a real server, workers and agents. Its world has the model and the invariants.
type realRun struct {
	*world
	crew   *crew
	ctx    context.Context // of all requests of one run
	op     operations.Operator
	id     string
	dice   *rand.Rand
	vacant [2]time.Time // when a killed worker is replaced; zero: it is at work
	asked  time.Time    // when the operator has sent something last
	at     string       // what the operator has answered last
	moved  bool         // something has changed a question: calls are not comparable

	replayed int // histories
}

// playReal executes the run of a plan, and checks all that must hold at its end.
func (c *crew) playReal(ctx context.Context, seed uint64, p plan, name string) (r *realRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	root := filepath.Join(c.root, name)
	r = &realRun{world: newWorld(seed, root, p, ""), crew: c, ctx: ctx, op: c.op,
		dice: rand.New(rand.NewPCG(seed, 3))}
	r.world.real = r
	r.op.Settings.ContinueAfter = p.continueAfter
	def, err := r.prepare()
	if err != nil {
		return r, err
	}
	if err := r.start(def); err != nil {
		return r, err
	}
	if err := errors.Join(r.epochsOf(def), r.replaced(true)); err != nil {
		return r, err
	}
	living, err := supervisor.Running(r.op.Settings.Scratch())
	for n := 0; err == nil && len(living) > 0 && n < 300; n++ {
		time.Sleep(50 * time.Millisecond)
		living, err = supervisor.Running(r.op.Settings.Scratch())
	}
	if r.check(err); len(living) > 0 {
		r.fail("invariant 8: supervisors survive: %v", living)
	}
	r.readAgents()
	r.ended()
	r.check(r.once())
	r.replayed, err = histories.ReplayRun(ctx, r.op.Client, r.id, *realRecord, "TestRealServer-"+name)
	r.check(err)
	return r, r.failure()
}

// prepare writes what the run is started with.
func (r *realRun) prepare() (operations.Definition, error) {
	home := filepath.Join(r.root, "definition")
	text := strings.NewReplacer("/bin/true", filepath.Join(r.root, agentProgram), "make test", "test -d docs",
		"limits:\n", "limits:\n  time_scale: 0.02\n").Replace(r.plan.definition())
	files := map[string]string{"pipeline.yaml": text}
	for name, text := range sources {
		files[name] = text
	}
	for name, text := range sourceFiles {
		files["src/"+name] = text
	}
	r.leave(behaviour{files: files}, home)
	told := fmt.Sprintf(`{"seed":%d,"faults":%t}`, r.seed, r.plan.agentFaults)
	r.leave(behaviour{files: map[string]string{agentPlan: told}}, r.root)
	err := errors.Join(r.failure(), os.Symlink(r.crew.site.program, filepath.Join(r.root, agentProgram)))
	if err != nil {
		return operations.Definition{}, err
	}
	def, err := operations.Load(os.DirFS(home), "pipeline.yaml", filepath.Join(home, "pipeline.yaml"))
	def.Home = home
	return def, err
}

func (r *realRun) start(def operations.Definition) error {
	st, err := r.op.Start(r.ctx, def, r.dir)
	r.id = st.RunID
	return err
}

// epochsOf executes the run to its end, with all its epochs.
func (r *realRun) epochsOf(def operations.Definition) error {
	for {
		if err := r.epochOf(); err != nil {
			return err
		}
		now, err := r.dir.Now()
		if err != nil {
			return err
		}
		s := now.State.Status
		r.running = !s.Closed()
		r.note(fmt.Sprintf("the execution has closed; the run is %s", s))
		ended, err := r.hasEnd()
		if err != nil {
			return err
		}
		again := r.running || s == run.Failed || s == run.Cancelled || s == run.Halted || !ended
		if !again || r.epochs == maxEpochs-1 || r.stopped {
			return nil
		}
		r.epochs++
		if now.Tail.Seq == 0 {
			err = r.start(def)
		} else {
			err = r.reopen(now.State)
		}
		if err != nil {
			return err
		}
	}
}

// hasEnd reports whether the journal has the end of the last epoch. The execution of an approved run may be terminated
// before it has written it.
func (r *realRun) hasEnd() (bool, error) {
	events, _, err := r.dir.Events()
	for _, e := range slices.Backward(events) {
		switch e.Kind {
		case run.KindRunEnd:
			return true, err
		case run.KindRunStart, run.KindRunResumed, run.KindRunReverted:
			return false, err
		}
	}
	return false, err
}

func (r *realRun) reopen(s run.State) error {
	o := operations.Reopening{Force: s.Status == run.Halted, Reason: "try again"}
	if q, ok := s.Asks(); ok {
		o.Decision = &contract.Message{Action: q.Actions[0], ID: q.ID, By: "ada", Feedback: "more"}
	}
	_, err := r.op.Reopen(r.ctx, r.dir, o)
	return err
}

// epochOf disturbs the run, and answers what it asks, until its workflow has closed.
func (r *realRun) epochOf() error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-r.ctx.Done():
			return fmt.Errorf("the run does not end: %w", r.ctx.Err())
		case <-tick.C:
		}
		r.executions++
		if err := r.replaced(false); err != nil {
			return err
		}
		r.upset()
		r.watch()
		if n%5 > 0 {
			continue
		}
		d, err := r.op.Client.DescribeWorkflowExecution(r.ctx, r.id, "")
		if err != nil || d.WorkflowExecutionInfo.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return err
		}
	}
}

// watch has the operator answer what the run waits for.
func (r *realRun) watch() {
	now, err := r.dir.Now()
	if err != nil {
		return // it is being written for the first time
	}
	q, asks := now.State.Asks()
	if !asks && now.State.Status != run.Paused {
		return
	}
	at := fmt.Sprint(now.State.Epoch, now.State.Reason, q.ID, now.State.Passes.LastSettled)
	if at == r.at && time.Since(r.asked) < 2*time.Second { // journaling an answer takes time, too
		return
	}
	r.at, r.asked = at, time.Now()
	r.look(r)
}

// upset does what may disturb the run at this moment.
func (r *realRun) upset() {
	const seldom = 40 // times 20 ms
	if r.dice.IntN(seldom) > 0 {
		return
	}
	r.picks++
	k := []disturbance{crash, kill, note, terminated, reset}[r.dice.IntN(5)]
	if r.count[k] >= r.plan.most[k] {
		return
	}
	r.count[k]++
	r.note("disturbance: " + string(k))
	switch k {
	case crash:
		r.crashOne(r.dice.IntN(len(r.vacant)))
	case kill:
		living, err := supervisor.Running(r.op.Settings.Scratch())
		if err == nil && len(living) > 0 {
			r.note(fmt.Sprintf("kill supervisor %d: %v", living[0].Process.PID, living[0].Process.Signal(syscall.SIGKILL)))
		}
	case note:
		r.moved = true
		r.message(r.dice)
	case terminated:
		err := r.op.Client.TerminateWorkflow(r.ctx, r.id, "", "test")
		r.note(fmt.Sprintf("terminate: %v", err))
	case reset:
		r.note(fmt.Sprintf("reset: %v", r.resetNow()))
	}
}

// crashOne kills a worker, and checks what it leaves.
func (r *realRun) crashOne(place int) {
	if !r.vacant[place].IsZero() {
		return
	}
	r.crew.kill(place)
	r.vacant[place] = time.Now().Add(time.Duration(1+r.dice.IntN(400)) * time.Millisecond)
	r.keep()
	r.crashed()
	if raw, err := os.ReadFile(r.dir.Path("events.jsonl")); err == nil {
		r.journal = invariants.CompleteLines(raw)
	}
}

// replaced starts workers in the places of those that were killed, some time after that.
func (r *realRun) replaced(all bool) error {
	for n, at := range r.vacant {
		if at.IsZero() || !all && time.Now().Before(at) {
			continue
		}
		r.vacant[n] = time.Time{}
		if err := r.crew.hire(n); err != nil {
			return err
		}
	}
	return nil
}

// resetNow resets the open execution to one of its workflow tasks.
func (r *realRun) resetNow() error {
	var tasks []int64
	history := r.op.Client.GetWorkflowHistory(r.ctx, r.id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			return err
		}
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			tasks = append(tasks, e.EventId)
		}
	}
	if len(tasks) == 0 {
		return errors.New("no workflow task was completed")
	}
	_, err := r.op.Client.ResetWorkflowExecution(r.ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: r.id},
		Reason: "test", RequestId: uuid.NewString(), WorkflowTaskFinishEventId: tasks[r.dice.IntN(len(tasks))],
	})
	return err
}

// SignalWorkflow is of execution.
func (r *realRun) SignalWorkflow(name string, message any) {
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	if err := r.op.Client.SignalWorkflow(ctx, r.id, "", name, message); err != nil {
		r.note("not sent: " + err.Error())
	}
}

// CancelWorkflow is of execution.
func (r *realRun) CancelWorkflow() {
	r.note(fmt.Sprintf("cancel: %v", r.op.Client.CancelWorkflow(r.ctx, r.id, "")))
}

func (r *realRun) update(verb, id string, m contract.Message) {
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	_, err := r.op.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: r.id, UpdateID: id,
		UpdateName: verb, Args: []any{m}, WaitForStage: client.WorkflowUpdateStageAccepted})
	if err != nil {
		r.note("update: " + err.Error())
	}
}
