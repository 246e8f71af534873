package activities

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lateShare is the share of the timeout after which an agent whose session can be continued is asked to finish.
const lateShare = 0.8

// streams reports whether an agent reports its session before it ends.
func streams(ag pipeline.Agent) bool {
	a, _ := adapter.Find(replyKind(ag))
	return a.Stream
}

// resumed returns the command of an agent that continues a session.
func resumed(ag pipeline.Agent, session string) ([]string, bool) {
	a, ok := adapter.Find(replyKind(ag))
	if !ok || a.Resume == nil {
		return nil, false
	}
	return a.Resume(ag.Run, session)
}

// continueSession changes a command so that it continues the session of the newest earlier delivery of the same
// question, if there is one that this host can continue, or else that of the previous call of a role that continues
// its own. It sets the timeout: an agent that can continue gets a part of it, and the rest to finish.
func (a *Activities) continueSession(ctx context.Context, st *runningCall, in contract.PassInput, cmd *agent.Command) error {
	ag := st.agent
	st.work = a.ownWork(st, in)
	if !ag.Sessions() {
		return nil
	}
	session, refused, err := a.interrupted(ctx, st)
	if session == nil && !refused && err == nil && st.number == 1 {
		session, err = a.steered(ctx, st, in)
	}
	if err != nil {
		return err
	}
	if session != nil {
		session = copied(ctx, session, ag)
	} else if session, err = a.previousSession(ctx, st, in, refused); err != nil {
		return err
	}
	early := time.Duration(float64(cmd.Timeout) * lateShare)
	st.early = st.mayEndEarly() && (session == nil || !session.Late)
	switch {
	case st.early:
		cmd.Timeout = early
	case session != nil && session.Late:
		cmd.Timeout -= early
	}
	if session != nil {
		session.Used = usedBy(ctx, ag, session.ID)
		st.session, st.work = session, session.Work
		cmd.Argv, _ = resumed(ag, session.ID)
	}
	return nil
}

// limitCost has an agent stop at what its call may spend, if it can and its command has no such option.
func limitCost(ag pipeline.Agent, argv []string, usd float64) (limited []string, ok bool) {
	a, _ := adapter.Find(replyKind(ag))
	if usd <= 0 || a.Budget == nil {
		return argv, false
	}
	if limited, ok = a.Budget(argv, usd); !ok {
		return argv, false
	}
	return limited, true
}

// interrupted returns the session of the newest earlier delivery of the same question, or nil if there is none that
// this host can continue. refused: that delivery's agent did not continue a session.
func (a *Activities) interrupted(ctx context.Context, st *runningCall) (_ *calls.Session, refused bool, _ error) {
	for n := st.number - 1; n > 0; n-- {
		end, err := st.l.ReadEnd(ctx, n)
		if err != nil {
			return nil, false, err
		}
		if end != nil && (end.Refused || end.Session != nil) {
			return a.usableBy(st, end.Session), end.Refused, nil
		}
	}
	ans, err := st.l.EarlierTry(ctx)
	if err != nil || ans == nil {
		return nil, false, err
	}
	return a.usableBy(st, ans.Session), false, nil
}

// usableBy leaves out a session of another program: the call fell back to another agent.
func (a *Activities) usableBy(st *runningCall, s *calls.Session) *calls.Session {
	if ad, _ := adapter.Find(st.kind); s != nil && s.Of != "" && s.Of != ad.Program {
		return nil
	}
	return a.usable(s)
}

func (a *Activities) usable(s *calls.Session) *calls.Session {
	if !s.Usable(a.cfg.Host, a.cfg.Scratch) {
		return nil
	}
	return s
}

// leave returns the session of an interrupted delivery with its cost, which the next one can continue; nil if there is
// none.
func (a *Activities) leave(ctx context.Context, st *runningCall, ans *calls.Answer, stdout []byte, cause string,
	cost *run.Spend) *calls.Session {
	ad, ok := adapter.Find(st.kind)
	if !st.continues() || !ok {
		return nil
	}
	summary := ad.Read(stdout)
	s := &calls.Session{ID: summary.Session, Host: a.cfg.Host, Work: st.work, Of: ad.Program, Cause: cause}
	if st.session != nil && st.session.From != s.ID {
		s.Last = st.session.From
	}
	s.Told = st.session != nil && st.session.Told
	if ad.Session && cost != nil {
		if st.session != nil {
			s.Counted, s.Unknown = st.session.Counted, st.session.Unknown
		}
		s.Counted, s.Unknown = s.Counted.Plus(*cost), max(0, s.Unknown+cost.UnknownCalls())
	}
	if st.folder != nil {
		if s.Tree = a.interruptedTree(ctx, st, ans); s.Tree == nil {
			return nil
		}
	}
	return a.usable(s)
}

// interruptedBy returns the error of a delivery that ended without an answer, with its session and its cost.
func (a *Activities) interruptedBy(ctx context.Context, st *runningCall, stdout []byte,
	reason, cause string) *noAnswerError {
	cost := a.spentUntil(ctx, st, stdout)
	return &noAnswerError{reason: reason, end: calls.End{
		Session: a.leave(ctx, st, nil, stdout, cause, cost), Spend: cost,
	}}
}

// spentUntil returns what an interrupted delivery has cost, as far as it is known; nil: no agent was started, or its
// agent is a command.
func (a *Activities) spentUntil(ctx context.Context, st *runningCall, stdout []byte) *run.Spend {
	if st.command() || !begun(st.dir) {
		return nil
	}
	s := run.Spend{Known: run.CostUnknown}
	if ad, _ := adapter.Find(st.kind); ad.New != nil {
		read := ad.Read(stdout)
		if _, known := read.Usage(); known != run.CostUnknown {
			s = limitSpend(spend(a.readReply(st.agent, agent.Exit{Code: -1, Signal: "killed"}, string(stdout), "", 0)))
		}
	}
	s = a.spentBySession(ctx, st, stdout, s)
	return &s
}

// begun reports whether the agent of a delivery may have been started. Without its directory nothing is known.
func begun(dir string) bool {
	_, recorded, err := supervisor.ReadRecord(dir)
	if _, missing := os.Stat(dir); missing != nil {
		return true
	}
	return recorded || err != nil
}

// lost returns the error of a delivery whose supervisor was lost with the agent.
func (a *Activities) lost(ctx context.Context, st *runningCall) *noAnswerError {
	out, err := calls.ReadOutputs(st.dir, int64(st.limits.Output))
	if err != nil {
		out.Stdout = nil // the next delivery starts a new one
	}
	return a.interruptedBy(ctx, st, out.Stdout, "the supervisor of the call was lost, and the agent with it",
		"your process was ended")
}

// nearlyLate returns the error of a delivery that was ended early, so that it is asked to finish; nil if it was not, or
// if its session is not known.
func (a *Activities) nearlyLate(ctx context.Context, st *runningCall, exit agent.Exit, stdout []byte) error {
	if !st.early || !exit.TimedOut || exit.Idle || agent.Complete(st.kind, stdout) {
		return nil
	}
	none := a.interruptedBy(ctx, st, stdout, "the time for the call is nearly up", "")
	if none.end.Session == nil {
		return nil
	}
	none.end.Session.Late, none.again = true, true
	return none
}

// endWithout records that a delivery has no answer, and removes its directories except for that of its session.
func (a *Activities) endWithout(ctx context.Context, l calls.Ledger, number int, dir string, end calls.End) error {
	if err := l.End(ctx, number, end); err != nil {
		return err
	}
	a.warn(ctx, "remove the scratch directory of a call without an answer", dir,
		calls.RemoveFolder(dir, end.Session.WorkDir()))
	return nil
}

// interruption returns why a failed call was interrupted, so that the next try continues it; empty if it was not.
func interruption(ans *calls.Answer) string {
	f := ans.Read.Failure
	switch {
	case f == nil || f.Permanent:
		return ""
	case ans.Exit.Idle:
		return "you printed nothing for too long"
	case ans.Exit.TimedOut:
		return "the time limit was reached"
	case ans.Exit.Signal != "":
		return "your process was ended"
	}
	switch f.Cause {
	case limits.Plan, limits.Rate, limits.Overload:
		return "the provider refused requests for a time"
	case limits.Unreachable:
		return "the connection to the provider failed"
	}
	return ""
}

// refused reports whether an agent did not continue its session: it failed before it asked a model anything.
func refused(st *runningCall, ans *calls.Answer) bool {
	f := ans.Read.Failure
	return st.session != nil && f != nil && f.Category == run.CategoryAgentExit && !f.Permanent &&
		ans.Exit.Signal == "" && f.Cause == "" &&
		ans.Read.Spend.Tokens == (run.Tokens{})
}

// continuation is the prompt that continues a session.
func continuation(s *calls.Session) []byte {
	text := "You were interrupted: " + s.Cause + ". Your changes to files are kept. Continue where you stopped.\n"
	if len(s.Instructions) > 0 {
		text = instructed(s.Instructions)
	}
	if s.Late {
		text = "Your time for this task is nearly up. Start nothing new: finish now what is necessary, and answer.\n"
	}
	return []byte(text + "\nGive the whole answer that the task asks for, not only the rest of it.\n")
}

// readClaim adds to a delivery that was claimed its session, its working directory and its artifact.
func (a *Activities) readClaim(ctx context.Context, st *runningCall, in contract.PassInput) error {
	st.work, st.early = a.ownWork(st, in), st.mayEndEarly()
	if st.keeps() || st.continues() || st.inherits(in) {
		c, err := st.l.ReadClaim(ctx, st.number)
		if err != nil {
			return err
		}
		if st.note = c.Note; c.Session != nil {
			st.session, st.work, st.early = c.Session, c.Session.Work, st.early && !c.Session.Late
		}
	}
	return st.getArtifact(ctx, in)
}

// claimed describes a delivery that was claimed.
func (a *Activities) claimed(ctx context.Context, l calls.Ledger, in contract.PassInput, number int,
	dir string) (*runningCall, error) {
	st, err := a.newCall(ctx, l, in, number, dir)
	if err == nil {
		err = a.readClaim(ctx, st, in)
	}
	return st, err
}

// removeEarlier removes what earlier deliveries of the same question left for a session that was continued, or will
// not be.
func (a *Activities) removeEarlier(ctx context.Context, st *runningCall, keep string) {
	var folders []string
	if st.session != nil {
		folders = append(folders, filepath.Dir(filepath.Dir(st.session.Work)))
	}
	if ans, err := st.l.EarlierTry(ctx); err == nil && ans != nil && a.usable(ans.Session) != nil {
		folders = append(folders, filepath.Dir(filepath.Dir(ans.Session.Work)))
	}
	for _, dir := range folders {
		if dir != filepath.Dir(st.dir) && filepath.Dir(dir) == a.cfg.Scratch {
			a.warn(ctx, "remove the scratch directory of an interrupted call", dir, calls.RemoveExcept(dir, keep))
		}
	}
}
