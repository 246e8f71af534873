package live

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// Calls reads the outputs of running calls.
type Calls struct {
	// File returns the file with the output of a running call on this host, or an error to show.
	File    func(call string) (string, error)
	Hide    func(text string) string // hides secrets
	readers map[string]*Reader       // by file
}

// Output is the output of one running call.
type Output struct {
	view.InFlightCall
	View
	Changed time.Time // when the agent printed the last time
	Err     error     // why there is none
}

// Read returns the outputs of calls, in their order.
func (c *Calls) Read(flights []view.InFlightCall) []Output {
	var out []Output
	readers := map[string]*Reader{}
	for _, f := range flights {
		o := Output{InFlightCall: f}
		file, err := c.File(f.Call)
		if err == nil {
			o.Changed, o.View, err = c.readFile(file, f.Reply, readers)
		}
		o.Err = err
		out = append(out, o)
	}
	c.readers = readers
	return out
}

func (c *Calls) readFile(file, reply string, readers map[string]*Reader) (time.Time, View, error) {
	r := c.readers[file]
	if r == nil {
		r = NewReader(file, reply)
	}
	readers[file] = r
	v, err := r.Read()
	if err != nil {
		return time.Time{}, v, err
	}
	for i, line := range v.Lines {
		v.Lines[i] = c.Hide(line)
	}
	v.Partial, v.Tool = c.Hide(v.Partial), c.Hide(v.Tool)
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}, v, err
	}
	return info.ModTime(), v, nil
}

// Text describes the view in one line: the tool that runs, the model requests, tokens and cost until now. It is empty
// if nothing of this is known.
func (v View) Text(now time.Time) string {
	var parts []string
	if v.Tool != "" {
		parts = append(parts, v.Tool+" ("+view.Duration(now.Sub(v.Since))+")")
	}
	if v.Requests > 0 {
		parts = append(parts, run.Plural(v.Requests, "request"))
	}
	u := v.Usage
	if n := u.Input + u.Output + u.CacheRead + u.CacheWrite; n > 0 && v.Known != run.CostUnknown {
		text := grouped(n) + " tokens"
		if v.Known == run.CostAtLeast {
			text = "≥ " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " · ")
}

// grouped writes a number with separators of thousands.
func grouped(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
