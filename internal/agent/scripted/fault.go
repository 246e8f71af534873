package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Fault makes one call fail. A fault file is a YAML list of them; the first that matches counts.
type Fault struct {
	At      string  `yaml:"at"`      // a pass number, or auditor-B-1, weaver-2, refine-1: the round is last
	Attempt string  `yaml:"attempt"` // "1" (also when left out), "1-4" or all; attempts are counted across restarts
	Do      string  `yaml:"do"`      // see kinds
	Code    int     `yaml:"code"`    // exit: the exit code, 1
	Stderr  string  `yaml:"stderr"`  // exit: the text on stderr
	Text    string  `yaml:"text"`    // say: the whole reply; is_error: the message
	Bytes   int     `yaml:"bytes"`   // big: length of the reply
	Width   int     `yaml:"width"`   // width: of the page's container in pixels, 800
	Seconds float64 `yaml:"seconds"` // slow: how long it thinks
	Until   string  `yaml:"until"`   // slow, except for a worker: it answers as soon as this file exists
	When    string  `yaml:"when"`    // kill_engine: before (also when left out) or after the reply
}

// kinds are the values of Fault.Do.
var kinds = []string{
	"exit", "rate_limit", "hang", "truncate", "empty", "no_html", "no_sections", "no_markers", "bad_json", "is_error",
	"width", "big",
	"say", "kill_engine", "slow",
}

var attempts = lazyregexp.New(`^(?:([1-9]\d*)(?:-([1-9]\d*))?|all)$`)

// faultFor counts this attempt of the call and returns its fault. Without a file there are no faults.
func faultFor(file, at string) (*Fault, error) {
	if file == "" {
		return nil, nil
	}
	faults, err := loadFaults(file)
	if err != nil {
		return nil, err
	}
	attempt, err := count(file+".attempts", at)
	if err != nil {
		return nil, fmt.Errorf("count attempts: %w", err)
	}
	for _, f := range faults {
		if f.At == at && f.covers(attempt) {
			return &f, nil
		}
	}
	return nil, nil
}

func loadFaults(file string) ([]Fault, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read faults: %w", err)
	}
	var faults []Fault
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&faults); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read faults %s: %w", file, err)
	}
	for i := range faults {
		if err := faults[i].normalize(); err != nil {
			return nil, fmt.Errorf("read faults %s: fault %d: %w", file, i+1, err)
		}
	}
	return faults, nil
}

// normalize sets defaults and rejects unknown values.
func (f *Fault) normalize() error {
	if n, err := strconv.Atoi(f.At); err == nil {
		f.At = fmt.Sprintf("%03d", n)
	}
	if f.Attempt == "" {
		f.Attempt = "1"
	}
	switch {
	case f.At == "":
		return errors.New("at is missing; give a pass number or a name like weaver-2")
	case !slices.Contains(kinds, f.Do):
		return fmt.Errorf("do: %q is unknown; use one of %s", f.Do, strings.Join(kinds, ", "))
	case !attempts.MatchString(f.Attempt):
		return fmt.Errorf("attempt: %q is none; write 1, 1-4 or all", f.Attempt)
	case !slices.Contains([]string{"", "before", "after"}, f.When):
		return fmt.Errorf("when: %q is unknown; use before or after", f.When)
	}
	return nil
}

func (f Fault) covers(attempt int) bool {
	m := attempts.FindStringSubmatch(f.Attempt)
	if m[1] == "" {
		return true
	}
	from, to := number(m[1]), number(m[1])
	if m[2] != "" {
		to = number(m[2])
	}
	return from <= attempt && attempt <= to
}

// count adds this attempt to the file and returns its number. One line for each attempt: it survives any kill.
func count(file, at string) (int, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	n := 1
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == at {
			n++
		}
	}
	return n, appendLine(file, at)
}
