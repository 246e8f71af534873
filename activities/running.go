package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// runningCall is a delivery of a call in this worker. [Activities.newCall] describes it from the plan, the place and the
// number of the delivery. [Activities.continueSession], for a delivery that begins, or [Activities.readClaim], for one that
// was claimed, adds the session. When done is closed, ans or err is set.
type runningCall struct {
	done chan struct{}
	ans  *calls.Answer
	err  error

	l      calls.Ledger
	number int    // of the delivery
	dir    string // scratch directory of the delivery

	place
	agent  pipeline.Agent
	kind   string // of replies
	limits pipeline.Limits
	folder *callFolder // how it uses the workspace; nil: the run has none

	session *calls.Session // that it continues; nil: none
	note    string         // why it continues none, though its role does
	work    string         // the agent's working directory; of a continued session, of an earlier delivery
	early   bool           // its timeout is earlier than that of the attempt, so that it can be asked to finish
	file    string         // path of the artifact in the working directory, if the agent gets it
	before  []byte         // content of the artifact before the call

	paid      gate.Call // as it is reserved
	objects   string    // that the repository in the working directory shares with others
	recovered bool      // read from the output of an earlier delivery
	reported  string    // its session, as the agent reported it
}

// newCall describes a delivery: all that follows from the plan.
func (a *Activities) newCall(ctx context.Context, l calls.Ledger, in contract.PassInput, number int,
	dir string) (*runningCall, error) {
	p, err := a.place(ctx, l.Store, in.At)
	if err != nil {
		return nil, err
	}
	ag, ok := p.acts()
	if !ok {
		return nil, badInput("the plan has no agent %q", p.role.Agent)
	}
	st := &runningCall{done: make(chan struct{}), l: l, number: number, dir: dir, place: p,
		agent: allow.Alone(ag, a.cfg.Sandbox.Mode, a.offers()), kind: replyKind(ag), limits: p.plan.RoleLimits(p.step, p.role.Name),
		folder: folderOf(p.plan, p.role, in)}
	if st.folder == nil {
		return st, nil
	}
	if p.plan.Workspace == nil || !p.plan.Workspace.Bare {
		var secret []string
		if secret, err = workspace.IncludedSecrets(ctx, in.Tree.Workspace); len(secret) > 0 {
			a.cfg.LearnSecrets(secret)
		}
	}
	if err != nil || !st.gets(pipeline.PartPictures) {
		return st, err
	}
	st.folder.pictures, err = picturePaths(ctx, l.Store, in.Pictures)
	return st, err
}

// keeps reports whether the role continues its session from call to call.
func (st *runningCall) keeps() bool { return st.role.Session == pipeline.SessionContinue }

// inherits reports whether a delivery may continue the session of an earlier question, or the adopted one.
func (st *runningCall) inherits(in contract.PassInput) bool {
	return in.Session != nil && (st.keeps() || in.Session.Adopted())
}

// continues reports whether the agent can continue its sessions, and is to.
func (st *runningCall) continues() bool {
	return st.agent.Sessions() && st.agent.OnInterrupt != pipeline.InterruptRestart
}

// mayEndEarly reports whether the agent can be asked to finish before its time is up.
func (st *runningCall) mayEndEarly() bool { return st.continues() && streams(st.agent) }

// gets reports whether the prompt has a part.
func (st *runningCall) gets(part string) bool {
	return slices.Contains(st.plan.PartsOf(st.step, st.role.Name), part)
}

// artifact is the name of its file; empty: the run has none.
func (st *runningCall) artifact() string {
	if st.plan.Artifact == nil {
		return ""
	}
	return st.plan.Artifact.File
}

// getArtifact reads the artifact that the agent gets in its working directory.
func (st *runningCall) getArtifact(ctx context.Context, in contract.PassInput) (err error) {
	if st.command() || in.Artifact == nil || !st.gets(pipeline.PartArtifact) {
		return nil
	}
	st.file = filepath.Join(st.work, st.artifact())
	st.before, err = blobs.Get(ctx, st.l.Store, in.Artifact.Digest)
	return err
}

// ownWork returns the working directory of a delivery that continues no interrupted one.
func (a *Activities) ownWork(st *runningCall, in contract.PassInput) string {
	if st.folder != nil {
		return a.folderPath(in)
	}
	return filepath.Join(st.dir, calls.WorkDir)
}

func (a *Activities) isRunning(call string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.running[call]
	return ok
}

// replySize returns the current size of a running call's reply.
func (a *Activities) replySize(call string) int64 {
	a.mu.Lock()
	st := a.running[call]
	a.mu.Unlock()
	if st == nil {
		return 0
	}
	fi, err := os.Stat(filepath.Join(st.dir, calls.StdoutFile))
	if err != nil {
		return 0
	}
	return fi.Size()
}

// startFunc starts or joins a call. Its supervisor keeps awake open.
type startFunc func(awake *os.File) (*runningCall, *agent.Child, error)

// startOrJoin starts the call's process, or joins it if this worker has it.
func (a *Activities) startOrJoin(ctx context.Context, l calls.Ledger, in contract.PassInput,
	start startFunc) (*runningCall, bool, error) {
	var st *runningCall
	var release func()
	call, joined, err := a.inFlight.Join(in.Call, func() (*agent.Child, error) {
		var child *agent.Child
		var awake *os.File
		var err error
		awake, release = a.cfg.KeepAwake()
		if st, child, err = start(awake); err != nil {
			release()
			return nil, err
		}
		a.mu.Lock()
		a.running[in.Call] = st
		a.mu.Unlock()
		return child, nil
	})
	var spawn *spawnError
	if errors.As(err, &spawn) {
		return spawn.st, joined, nil
	}
	if err != nil {
		return nil, joined, err
	}
	if joined {
		a.mu.Lock()
		st = a.running[in.Call]
		a.mu.Unlock()
		if st == nil { // it settled meanwhile: its answer is stored
			ans, err := l.Result(ctx)
			return &runningCall{done: closedChan(), ans: ans, err: err}, true, nil
		}
		return st, true, nil
	}
	go func() {
		defer release()
		a.watch(context.WithoutCancel(ctx), call, in, st)
	}()
	return st, false, nil
}

func closedChan() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// spawnError is a call whose process could not be started; that is an answer too.
type spawnError struct {
	st  *runningCall
	err error
}

func (e *spawnError) Error() string { return e.err.Error() }

// launch starts a supervisor, claims the delivery, prepares the scratch directory and releases the agent. If the
// worker dies in between, the supervisor ends without starting the agent.
func (a *Activities) launch(ctx context.Context, l calls.Ledger, in contract.PassInput,
	delivery int, awake *os.File) (*runningCall, *agent.Child, error) {
	st, err := a.newCall(ctx, l, in, delivery, a.deliveryDir(in.Call, delivery))
	if err != nil {
		return nil, nil, err
	}
	if st.step.Effect == run.EffectExternal && delivery > 1 {
		return nil, nil, &unknownEffectError{delivery: delivery - 1}
	}
	cmd, held, err := a.commandOf(ctx, st, in)
	if err != nil {
		return nil, nil, err
	}
	if err := st.getArtifact(ctx, in); err != nil {
		return nil, nil, err
	}
	p, err := a.supervise(st.dir, awake)
	if err != nil {
		return nil, nil, err
	}
	if err := a.admit(ctx, st, in, cmd, p.Identity()); err != nil {
		return nil, nil, errors.Join(err, p.Abandon())
	}
	if err := a.claim(ctx, st, in, cmd, held, p.Identity()); err != nil {
		return nil, nil, a.release(ctx, st, errors.Join(err, p.Abandon()))
	}
	if err := a.prepareScratch(ctx, st, in, p.Identity()); err != nil {
		return nil, nil, errors.Join(p.Abandon(), st.endDelivery(ctx, err), calls.RemoveFolder(st.dir, ""))
	}
	cmd.Dir = st.work
	calls.Within(st.dir, &cmd)
	if cmd.Sandbox != nil {
		cmd.Sandbox.Objects = st.objects
	}
	if err := calls.WriteIdentity(st.dir, a.worker); err != nil {
		return nil, nil, errors.Join(p.Abandon(), st.endDelivery(ctx, err), calls.RemoveFolder(st.dir, ""))
	}
	a.cfg.OnPoint(PointPrepared, in.Call)
	child, err := agent.Start(p, cmd)
	if err != nil {
		return nil, nil, a.handleSpawnFailure(ctx, st, err)
	}
	a.cfg.OnPoint(PointSpawned, in.Call)
	return st, child, nil
}

// usualIdle is how long an agent that reports what it does may report nothing, unless a tool runs or the definition has
// another time.
const usualIdle = time.Hour

// commandOf returns the command of a delivery, which continues a session if it can, and what restricts it.
func (a *Activities) commandOf(ctx context.Context, st *runningCall, in contract.PassInput) (agent.Command, sandbox.Held,
	error) {
	limits := st.limits
	cmd := agent.Command{
		Run: in.RunID, Argv: a.agentArgv(st.agent), Env: a.agentEnv(st.agent), Environment: environ.FromContext(ctx),
		Shell: st.command(), Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Idle: limits.Idle,
		Output: int64(limits.Output),
	}
	if kind, _ := adapter.Find(st.kind); cmd.Idle == 0 && kind.Stream && kind.Name != adapter.Text {
		cmd.Idle, cmd.Tools = usualIdle, true
	}
	if err := a.withItem(ctx, st.l.Store, in, &cmd); err != nil {
		return cmd, sandbox.Held{}, err
	}
	if err := a.continueSession(ctx, st, in, &cmd); err != nil {
		return cmd, sandbox.Held{}, err
	}
	cmd.Argv, _ = limitCost(st.agent, cmd.Argv, in.BudgetUSD)
	planned, _ := st.acts() // and not as this host calls it: so it was confirmed
	asks := a.bounds().OfAgent(planned)
	if st.command() {
		asks = a.bounds().OfStep(st.step)
	}
	held := a.confine(&cmd, st.agent.Confinement, asks, in.RunID, st.dir)
	return cmd, held, requireProgram(in, cmd)
}

// supervise returns the supervisor of a delivery, which Turn may have started early.
func (a *Activities) supervise(dir string, awake *os.File) (*supervisor.Process, error) {
	if p := a.takeEarly(dir); p != nil {
		return p, nil
	}
	return a.startSupervisor(dir, awake)
}

func (a *Activities) deliveryDir(call string, delivery int) string {
	return filepath.Join(a.cfg.Scratch, calls.FolderName(call), strconv.Itoa(delivery))
}

func (a *Activities) startSupervisor(dir string, awake *os.File) (*supervisor.Process, error) {
	if a.machine != nil {
		id, pipe, ended := a.machine.Start(a.worker, dir)
		return supervisor.Waiting(dir, id, pipe, ended), nil
	}
	argv, err := a.supervisor()
	if err != nil {
		return nil, err
	}
	return supervisor.Start(argv, dir, awake)
}

// supervisor returns the command of a supervisor.
func (a *Activities) supervisor() ([]string, error) {
	if a.cfg.Supervisor != nil {
		return a.cfg.Supervisor, nil
	}
	return supervisor.Argv(a.cfg.StateDir)
}

// endDelivery records that a delivery ended without a result because of cause, which it returns.
func (st *runningCall) endDelivery(ctx context.Context, cause error) error {
	return errors.Join(cause, st.l.End(context.WithoutCancel(ctx), st.number, calls.End{}))
}

// agentOf returns the agent of a step, or the shell.
func agentOf(plan *pipeline.Plan, step pipeline.PlanStep, role pipeline.Role) (pipeline.Agent, bool) {
	if step.Kind == pipeline.KindRun {
		return pipeline.Agent{
			Run: step.ShellArgv(), Reply: adapter.Text, Env: step.Env,
			Confinement: step.Confinement,
		}, true
	}
	return plan.Agent(role.Agent)
}

// agentArgv returns the command of an agent; the built-in one is this program.
func (a *Activities) agentArgv(ag pipeline.Agent) []string {
	if !isScripted(ag) {
		return ag.Run
	}
	return append(append([]string(nil), a.cfg.Scripted...), ag.Run[1:]...)
}

func isScripted(ag pipeline.Agent) bool { return len(ag.Run) > 0 && ag.Run[0] == pipeline.Scripted }

// replyKind returns the format of an agent's replies; the built-in one replies like claude.
func replyKind(ag pipeline.Agent) string {
	if ag.Reply == "" && isScripted(ag) {
		return adapter.ClaudeJSON
	}
	return ag.Reply
}

// agentEnv returns the variables that an agent gets; the built-in one has additional ones.
func (a *Activities) agentEnv(ag pipeline.Agent) []string {
	if !isScripted(ag) {
		return ag.Env
	}
	return append(scripted.EnvNames(), ag.Env...)
}

// claimGrace is the time a call may take beyond its timeout, for preparation and for the kill.
const claimGrace = 5 * time.Minute

func (a *Activities) claim(ctx context.Context, st *runningCall, in contract.PassInput, cmd agent.Command,
	held sandbox.Held, by process.Identity) error {
	request, err := json.Marshal(struct {
		Prompt, Artifact string
		Argv, Env        []string
	}{in.Prompt.Original(), run.DigestOf(in.Artifact), cmd.Argv, cmd.EnvNames()})
	if err != nil {
		return err
	}
	now := a.cfg.Now()
	return st.l.Claim(ctx, calls.Claim{
		Version: calls.Version, Call: in.Call, Request: string(store.DigestOf(request)), Prompt: in.Prompt.Digest,
		Host: a.cfg.Host, Worker: a.worker, Sandbox: held,
		Scratch: filepath.Dir(st.dir), At: run.Time(now), Supervisor: by, Session: st.session, Note: st.note,
		Pipeline: st.paid.Pipeline, Role: st.paid.Role, Account: st.paid.Account.ID, AccountName: st.paid.Account.Name,
		Deadline: run.Time(now.Add(cmd.Timeout + claimGrace)),
	}, st.number)
}

// handleSpawnFailure stores a failed start as the answer.
func (a *Activities) handleSpawnFailure(ctx context.Context, st *runningCall, cause error) error {
	var err error
	if st.ans, err = a.storeSpawnFailure(ctx, st, cause); err != nil {
		return errors.Join(st.endDelivery(ctx, err), calls.RemoveFolder(st.dir, "")) // nothing was started
	}
	close(st.done)
	return &spawnError{st: st, err: fmt.Errorf("start the agent: %w", cause)}
}

// storeSpawnFailure stores that the agent of a delivery was never started.
func (a *Activities) storeSpawnFailure(ctx context.Context, st *runningCall, cause error) (*calls.Answer, error) {
	f := agent.SpawnFailure(cause)
	a.redactAll(&f.Message, &f.Diagnostics)
	ans := &calls.Answer{Version: calls.AnswerVersion, Call: st.l.Call, Delivery: st.number, Host: a.cfg.Host, Spawn: f}
	ans.Exit.Started = a.cfg.Now()
	return a.storeAnswer(ctx, st, ans)
}

// watch waits for the child and stores its answer, even if no activity waits for it. A call that is handed over is
// left alone.
func (a *Activities) watch(ctx context.Context, call *agent.InFlightCall, in contract.PassInput, st *runningCall) {
	defer a.endIfStuck(ctx, st)()
	select {
	case <-call.Child.Done():
		st.ans, st.err = a.storeResult(ctx, call.Child, in, st)
	case <-a.handover:
		select {
		case <-call.Child.Done(): // an ended call is not handed over
			st.ans, st.err = a.storeResult(ctx, call.Child, in, st)
		default:
			st.err = errHandedOver
		}
	}
	a.mu.Lock()
	delete(a.running, in.Call)
	a.mu.Unlock()
	a.inFlight.Remove(call)
	close(st.done)
}

// noAnswerError is the error of a delivery whose agent ended without an answer: it was stopped, or lost with its
// supervisor.
type noAnswerError struct {
	reason string
	end    calls.End
	again  bool // the same activity makes the next delivery

	unnoted bool // its end could not be stored
}

func (e *noAnswerError) Error() string { return e.reason }

// storeResult stores the answer of a child that has ended. The delivery is only marked as ended if there is none:
// output can be read again later.
func (a *Activities) storeResult(ctx context.Context, child *agent.Child, in contract.PassInput,
	st *runningCall) (*calls.Answer, error) {
	exit, err := child.Result()
	a.cfg.OnPoint(PointExited, in.Call)
	var ans *calls.Answer
	var spawn *supervisor.SpawnError
	switch {
	case errors.As(err, &spawn):
		ans, err = a.storeSpawnFailure(ctx, st, spawn.Err)
	case errors.Is(err, agent.ErrLost):
		ans, err = a.recoverLost(ctx, in, st)
	case err == nil:
		ans, err = a.storeOutput(ctx, st, in, exit)
	}
	if none := (*noAnswerError)(nil); errors.As(err, &none) {
		if unstored := a.endWithout(context.WithoutCancel(ctx), st.l, st.number, st.dir, none.end); unstored != nil {
			none.again, none.unnoted, err = false, true, errors.Join(err, unstored)
		}
	}
	if ans != nil {
		a.cfg.OnPoint(PointStored, in.Call)
	}
	return ans, err
}

// recoverLost ends what a lost supervisor left. A complete answer still counts.
func (a *Activities) recoverLost(ctx context.Context, in contract.PassInput, st *runningCall) (*calls.Answer, error) {
	if err := calls.Reap(ctx, st.dir); err != nil {
		return nil, err
	}
	if ans, err := st.l.Result(ctx); ans != nil || err != nil {
		return ans, err // another worker of this host has read and removed it
	}
	ans, err := a.recoverOutput(ctx, st.l, in, st.number, st.dir)
	if ans == nil && err == nil {
		err = a.lost(ctx, st)
	}
	return ans, err
}

// storeOutput stores the output of a finished child; the first answer of a call counts. A stopped child has an answer
// only if its output is complete.
func (a *Activities) storeOutput(ctx context.Context, st *runningCall, in contract.PassInput,
	exit agent.Exit) (*calls.Answer, error) {
	free, err := a.outputSlot(ctx, st)
	if err != nil {
		return nil, err
	}
	defer free()
	out, err := calls.ReadOutputs(st.dir, int64(st.limits.Output))
	if err != nil {
		return nil, err
	}
	if exit.Replaced && out.Problem == "" {
		out.Stdout, out.Problem = nil, calls.StdoutFile+" is another file than the one that the agent printed to"
	}
	stuck := exit.Killed && exit.KillCause == repeatsCause && !agent.Complete(st.kind, out.Stdout)
	if stuck {
		if err := a.toldOnce(ctx, st, out.Stdout); err != nil {
			return nil, err
		}
	}
	if exit.Killed && !stuck && !exit.TimedOut && !agent.Complete(st.kind, out.Stdout) {
		none := a.interruptedBy(ctx, st, out.Stdout, "the agent was stopped: "+exit.KillCause, "you were stopped")
		a.settleFolder(ctx, st, true, false)
		return nil, none
	}
	if err := a.nearlyLate(ctx, st, exit, out.Stdout); err != nil {
		return nil, err
	}
	ans, err := a.newAnswer(ctx, st, in, exit, out)
	if err != nil {
		return nil, err
	}
	if refused(st, ans) {
		a.settleFolder(ctx, st, false, false)
		return nil, &noAnswerError{
			reason: "the agent did not continue its session", end: calls.End{Refused: true}, again: true,
		}
	}
	if ans.Recovered = st.recovered; stuck {
		ans.Read.Failure = a.stalled(st, out.Stdout)
	}
	if st.session != nil {
		ans.Resumed = st.session.Original()
	}
	if ans.Read.Failure != nil {
		ans.Read.Spend = a.spentBySession(ctx, st, out.Stdout, ans.Read.Spend)
	}
	st.withoutCounted(ans, out.Stdout)
	a.keepSession(ctx, st, in, ans, out.Stdout)
	if cause := interruption(ans); cause != "" {
		ans.Session = a.leave(ctx, st, ans, out.Stdout, cause, &ans.Read.Spend)
	}
	return a.storeAnswer(ctx, st, ans)
}

// storeAnswer stores an answer and returns the one that counts. Then it removes the scratch directories of the call.
func (a *Activities) storeAnswer(ctx context.Context, st *runningCall, ans *calls.Answer) (*calls.Answer, error) {
	won, err := st.l.Put(ctx, *ans)
	if err != nil {
		return nil, fmt.Errorf("store the answer of call %s: %w", st.l.Call, err)
	}
	if !won { // another one came first
		if ans, err = st.l.Result(ctx); err != nil {
			return nil, err
		}
	}
	a.removeCopy(ctx, st)
	if ans.Delivery == st.number {
		a.settleFolder(ctx, st, ans.Exit.Killed || ans.Exit.TimedOut || ans.TreeError != "",
			ans.Read.Failure == nil && ans.Read.Outcome == run.CategoryOK)
	}
	a.removeCallScratch(ctx, st, ans)
	return ans, nil
}
