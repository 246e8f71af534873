package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// previousSession returns a copy of the session of the previous accepted call of a role that continues its own, or nil
// if there is none. If it cannot be continued here, the call begins a new one, and its note contains the reason.
func (a *Activities) previousSession(ctx context.Context, st *runningCall, in contract.PassInput,
	refused bool) (*calls.Session, error) {
	if !st.inherits(in) {
		return nil, nil
	}
	anew := func(why string) (*calls.Session, error) {
		st.note = fmt.Sprintf("session %s is not continued: %s", in.Session.ID, why)
		return nil, nil
	}
	if refused {
		return anew("the agent did not find it")
	}
	kept, err := keptBefore(ctx, st, in)
	if err != nil {
		return nil, err
	}
	program := sessionProgram(ctx, st.agent)
	switch {
	case kept == nil:
		return anew("the record of its call was removed")
	case kept.Host != a.cfg.Host:
		return anew("its file is on another host, " + kept.Host)
	case kept.Program != program.Name:
		return anew("it is a session of " + kept.Program)
	}
	work := a.ownWork(st, in)
	c, err := program.CopyKept(a.cfg.StateDir, kept.File, kept.ID, work)
	if err != nil {
		return anew(err.Error())
	}
	return &calls.Session{ID: c.ID, Host: a.cfg.Host, Work: work, Of: program.Name, From: kept.ID, Copy: c.Path,
		Asks: true, Counted: kept.Counted, Unknown: kept.Unknown}, nil
}

// keptBefore returns the kept session that a call continues: that of the previous accepted call of its role, or the one
// that the run adopted; nil: its record was removed.
func keptBefore(ctx context.Context, st *runningCall, in contract.PassInput) (*calls.Kept, error) {
	if s := in.Session; s.Adopted() {
		return &calls.Kept{ID: s.ID, Host: s.Host, Program: s.Program, File: s.File}, nil
	}
	ans, err := calls.Ledger{Store: st.l.Store, Call: in.Session.Call}.Result(ctx)
	if err != nil || ans == nil {
		return nil, err
	}
	return ans.Kept, nil
}

// copied returns a session of an interrupted call as the program is to continue it. claude adds what a session has cost
// to that of the call that continues it, so that it continues a copy without that.
func copied(ctx context.Context, s *calls.Session, ag pipeline.Agent) *calls.Session {
	program := sessionProgram(ctx, ag)
	if program.Name != "claude" {
		return s
	}
	for _, id := range []string{s.ID, s.Last} {
		if c, err := program.Copy(id, s.Work); err == nil {
			next := *s
			next.ID, next.From, next.Copy, next.Last = c.ID, id, c.Path, ""
			return &next
		}
	}
	return s // claude finds it, or refuses
}

// sessionProgram returns the program of an agent, with the environment of its calls.
func sessionProgram(ctx context.Context, ag pipeline.Agent) sessions.Program {
	kind, _ := adapter.Find(replyKind(ag))
	cmd := agent.Command{Argv: ag.Run, Env: ag.Env, Environment: environ.FromContext(ctx)}
	return sessions.Program{Name: kind.Program, Environ: cmd.Environ()}
}

// moved introduces a question in a continued session: the working directory is a new one.
func moved(s *calls.Session) []byte {
	return []byte("Your working directory is now " + s.Work + ". The one of your earlier messages no longer exists: its " +
		"files are here, with all changes since.\n\n")
}

// keepSession keeps the session of an answer that can be accepted, for the next call of its role. An answer without
// its session is still an answer: its note contains the reason.
func (a *Activities) keepSession(ctx context.Context, st *runningCall, in contract.PassInput, ans *calls.Answer,
	stdout []byte) {
	ad, _ := adapter.Find(st.kind)
	if s := st.session; ad.Resume != nil && (st.keeps() || s != nil && s.Copy != "") {
		st.reported = ad.Read(stdout).Session
	}
	note := func(text string) {
		a.redactAll(&text)
		ans.Notes = append(ans.Notes, text)
	}
	if st.note != "" {
		note(st.note)
	}
	if !st.keeps() || ad.Resume == nil {
		return
	}
	if ans.Read.Failure != nil || ans.Read.Outcome != run.CategoryOK {
		return
	}
	program, id := sessionProgram(ctx, st.agent), st.reported
	root, _, _ := strings.Cut(in.Call, "/")
	file, err := program.Keep(a.cfg.StateDir, root, id)
	if err != nil {
		note("the next call of the role begins a new session: " + err.Error())
		return
	}
	ans.Kept = &calls.Kept{ID: id, Host: a.cfg.Host, Program: program.Name, File: file,
		Digest: string(store.DigestOf([]byte(id + " " + run.DigestOf(ans.Read.Text))))}
	if ad.Session {
		if s := st.session; s != nil {
			ans.Kept.Counted, ans.Kept.Unknown = s.Counted, s.Unknown
		}
		ans.Kept.Counted = ans.Kept.Counted.Plus(ans.Read.Spend)
		ans.Kept.Unknown = max(0, ans.Kept.Unknown+ans.Read.Spend.UnknownCalls())
	}
}

// keptSession returns the session of an accepted answer.
func keptSession(ans *calls.Answer) *run.KeptSession {
	if ans.Kept == nil {
		return nil
	}
	return &run.KeptSession{ID: ans.Kept.ID, Host: ans.Kept.Host, Call: ans.Call, Digest: ans.Kept.Digest}
}

// removeCopy removes the copy of a session that a delivery continued, if the agent continued in another one.
func (a *Activities) removeCopy(ctx context.Context, st *runningCall) {
	s := st.session
	if s == nil || s.Copy == "" || st.reported == "" || st.reported == s.ID {
		return
	}
	err := sessionProgram(ctx, st.agent).RemoveCopy(sessions.Copy{ID: s.ID, Path: s.Copy})
	a.warn(ctx, "remove the copy of a session", s.Copy, err)
}
