// Package live reads what an agent prints while its call runs, through the adapter of its reply. It reads each byte
// once and keeps only the end.
package live

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

const (
	keptLines = 200       // at the end of an output
	maxLine   = 2 << 10   // bytes of a line; the rest of a longer one follows as another line
	chunk     = 256 << 10 // bytes read at once
	perRead   = 32 << 20  // bytes read in one call of Read
)

// View is the state of a running call.
type View struct {
	Lines    []string // the last lines of text and tool calls, without control characters
	Partial  string   // the beginning of the next line
	New      int      // number of lines since the read before; more than Lines has: some are lost
	Tool     string   // the tool that runs, with its input; empty: none
	Since    time.Time
	Requests int // model requests with a report of their tokens
	Usage    adapter.Usage
	Known    run.CostKnown // of Usage
	Session  string
}

// Reader reads the growing output of one call. It is not safe for concurrent use.
type Reader struct {
	file     string
	parser   adapter.Parser
	summary  adapter.Summary
	offset   int64
	lines    []string
	open     string // a line without its end
	fresh    int
	answered bool // text was shown: the result repeats it
	tools    []tool
	requests map[string]bool
	Now      func() time.Time // time.Now
}

type tool struct {
	id, text string
	since    time.Time
}

// NewReader reads the output of an agent with that reply. An unknown reply is read as text.
func NewReader(file, reply string) *Reader {
	a, ok := adapter.Find(reply)
	if !ok {
		a, _ = adapter.Find(adapter.Text)
	}
	return &Reader{file: file, parser: a.New(), requests: map[string]bool{}, Now: time.Now}
}

// Read reads what was printed since the last call. It does not wait, and refuses files that are not regular.
func (r *Reader) Read() (v View, err error) {
	f, err := disk.OpenFile(r.file)
	if err != nil {
		return View{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r.fresh = 0
	source := io.NewSectionReader(f, r.offset, perRead)
	buf := make([]byte, chunk)
	for {
		n, err := source.Read(buf)
		r.offset += int64(n)
		r.add(r.parser.Parse(buf[:n]))
		if errors.Is(err, io.EOF) {
			return r.view(), nil
		}
		if err != nil {
			return View{}, err
		}
	}
}

func (r *Reader) view() View {
	v := View{Lines: slices.Clone(r.lines), New: r.fresh, Requests: len(r.requests), Session: r.summary.Session}
	v.Partial = strings.Join(plain(r.open), "")
	if n := len(r.tools); n > 0 {
		v.Tool, v.Since = r.tools[n-1].text, r.tools[n-1].since
	}
	v.Usage, v.Known = r.summary.Usage()
	return v
}

func (r *Reader) add(frames []adapter.Frame) {
	r.summary.Add(frames...)
	for _, f := range frames {
		switch f.Kind {
		case adapter.KindText:
			r.answered = true
			r.write(f.Text)
		case adapter.KindTool:
			r.tool(f)
		case adapter.KindUsage:
			if f.ID != "" && len(r.requests) < 1e6 {
				r.requests[f.ID] = true
			}
		case adapter.KindWarning:
			r.line("! " + f.Text)
		case adapter.KindResult:
			if !r.answered || f.Status != adapter.StatusComplete {
				r.line(f.Text)
			}
		}
	}
}

// tool shows the start of a tool call, and its end if it failed.
func (r *Reader) tool(f adapter.Frame) {
	if f.State == adapter.ToolStarted {
		text := strings.TrimSpace(f.Name + " " + run.OneLine(f.Text))
		r.tools = append(r.tools, tool{f.ID, text, r.Now()})
		r.line("→ " + text)
		return
	}
	at := slices.IndexFunc(r.tools, func(t tool) bool { return t.id == f.ID })
	text := f.Name
	if at >= 0 {
		text = r.tools[at].text
		r.tools = slices.Delete(r.tools, at, at+1)
	}
	if f.State == adapter.ToolFailed {
		r.line("✗ " + text)
	}
}

// write adds text, which may end within a line.
func (r *Reader) write(text string) {
	text = r.open + text
	end := strings.LastIndexAny(text, "\r\n") + 1
	for len(text)-end > maxLine {
		r.keep(plain(text[:end]))
		text = text[end:]
		for end = maxLine; !utf8.RuneStart(text[end]); {
			end--
		}
	}
	r.open = text[end:]
	r.keep(plain(text[:end]))
}

// line adds whole lines, after the line that is open.
func (r *Reader) line(text string) {
	r.keep(plain(r.open))
	r.open = ""
	r.keep(plain(text))
}

func (r *Reader) keep(lines []string) {
	r.fresh += len(lines)
	r.lines = append(r.lines, lines...)
	if n := len(r.lines) - keptLines; n > 0 {
		r.lines = slices.Delete(r.lines, 0, n)
	}
}

// plain splits a text into lines and removes control characters: agent output must not control the terminal.
func plain(text string) []string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
	var out []string
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return ' '
			case !unicode.IsPrint(r) && r != ' ':
				return -1
			}
			return r
		}, line)
		if strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return out
}
