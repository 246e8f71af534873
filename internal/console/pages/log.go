package pages

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// perLog is the number of events on a page of the log.
const perLog = 200

// logPart is a part of the journal.
type logPart struct {
	Lines   []logLine // oldest first
	Older   string
	Newest  string
	Damaged int
}

// logLine is one event.
type logLine struct {
	Seq          int64
	At, Day      string
	Kind         run.Kind
	Text         string
	Pass         bool // it has a page
	Stage, Class string
}

// log shows the journal of a run.
func (s *site) log(r *http.Request) (screen, error) {
	p, err := s.base(r, "log")
	if err != nil {
		return screen{}, err
	}
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 0
	}
	fold, now := run.NewFold(run.State{}, run.History{}), terms{}
	for line, err := range p.dir.Lines(0) {
		if err != nil {
			return screen{}, err
		}
		if line.Err != nil {
			p.Log.Damaged++
			continue
		}
		if before > 0 && line.Event.Seq >= before {
			p.Log.Newest = p.Path + "/log"
			break
		}
		before := *fold.Current()
		fold.Apply(line.Event)
		now.follow(line.Event)
		p.Log.Lines = append(p.Log.Lines, s.logLine(now.entry(line.Event, &before, fold.Current())))
		if n := len(p.Log.Lines); n > 2*perLog {
			p.Log.Lines = append(p.Log.Lines[:0], p.Log.Lines[n-perLog:]...)
		}
	}
	if n := len(p.Log.Lines); n > perLog {
		p.Log.Lines = p.Log.Lines[n-perLog:]
	}
	if len(p.Log.Lines) > 0 && p.Log.Lines[0].Seq > 1 {
		p.Log.Older = p.Path + "/log?before=" + strconv.FormatInt(p.Log.Lines[0].Seq, 10)
	}
	return p.view("log"), nil
}

// terms are what texts of the log name besides the event: those of the start, or of the last amendment before it.
type terms struct {
	rounds    int
	threshold *float64
	artifact  string
}

func (t *terms) follow(e run.Event) {
	switch e.Kind {
	case run.KindRunStart:
		p := run.PayloadOf[run.RunStart](e)
		t.rounds, t.threshold = p.MaxRounds, p.Threshold
		if p.Artifact != nil {
			t.artifact = p.Artifact.File
		}
	case run.KindRunAmended:
		p := run.PayloadOf[run.RunAmended](e)
		t.rounds, t.threshold = p.Terms.MaxRounds, p.Terms.Threshold
	}
}

func (t *terms) entry(e run.Event, before, after *run.State) run.Entry {
	of := run.Entry{Event: e, Before: before, After: after, MaxRounds: t.rounds, Threshold: t.threshold}
	if e.Kind == run.KindPassStart {
		of.Backup = rundir.BackupFile(run.PayloadOf[run.PassStart](e).Pass, t.artifact)
	}
	return of
}

func (s *site) logLine(e run.Entry) logLine {
	l := logLine{Seq: e.Seq, At: e.TS, Kind: e.Kind, Pass: e.Kind == run.KindPassEnd}
	var texts []string
	for _, line := range run.LogOf(e).Lines {
		if strings.Trim(line.Text, "═") == "" { // a rule
			continue
		}
		texts = append(texts, line.Text)
		if line.Level != run.LevelInfo {
			l.Class = strings.ToLower(string(line.Level))
		}
	}
	if len(texts) == 0 {
		texts = []string{run.Headline(e)}
	}
	l.Text, _ = cutText(s.h.Secrets.Text(strings.TrimSpace(strings.Join(texts, "\n"))), 4<<10)
	if t, err := time.Parse(run.TimeFormat, e.TS); err == nil {
		l.Day, l.At = t.Format(time.DateOnly), t.Format("15:04:05")
	}
	if e.Phase != nil {
		l.Stage = *e.Phase
	}
	return l
}
