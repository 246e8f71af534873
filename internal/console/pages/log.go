package pages

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
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
func (s *site) log(r *http.Request) (view, error) {
	p, err := s.base(r, "log")
	if err != nil {
		return view{}, err
	}
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 0
	}
	fold := p.dir.Fold()
	for line, err := range p.dir.Lines(0) {
		if err != nil {
			return view{}, err
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
		p.Log.Lines = append(p.Log.Lines, s.logLine(run.Entry{Event: line.Event, Before: &before, After: fold.Current()}))
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
