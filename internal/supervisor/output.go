package supervisor

import (
	"os"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/process"
)

// openFiles opens the input and the outputs of the agent. The outputs stay open: whatever the agent puts in the place
// of a file, its size is limited and it is synced.
func (s *supervision) openFiles() (stdin *os.File, err error) {
	if s.stdout, err = os.OpenFile(s.call.Stdout, outputFlags, 0); err != nil {
		return nil, err
	}
	if s.stderr, err = os.OpenFile(s.call.Stderr, outputFlags, 0); err != nil {
		return nil, err
	}
	if stdin, err = os.Open(s.call.Stdin); err != nil {
		return nil, err
	}
	return sealed(stdin)
}

const outputFlags = os.O_WRONLY | os.O_APPEND | syscall.O_NOFOLLOW

// checkOutput ends an agent that printed too much to stdout, or nothing for too long. Excess is truncated at once: it
// must not fill the disk.
func (s *supervision) checkOutput(now time.Time) {
	if s.call.Output <= 0 && s.call.Idle <= 0 {
		return
	}
	out, diagnostics := size(s.stdout), size(s.stderr)
	if out+diagnostics != s.printed {
		s.printed, s.printedAt = out+diagnostics, now
	}
	if s.truncated(s.stderr, diagnostics) {
		s.printed = out + s.call.Output
	}
	switch {
	case s.call.Output > 0 && out > s.call.Output:
		s.rec.Overflow = true
		s.truncated(s.stdout, out)
		s.terminate()
	case s.call.Idle > 0 && now.Sub(s.printedAt) >= s.call.Idle:
		if s.call.Tools && process.StartedBelow(s.agent, now.Sub(s.printedAt)+toolStarts) {
			return
		}
		if s.terminate() {
			s.rec.TimedOut, s.rec.Idle = true, true
		}
	}
}

// toolStarts is how long before the last output a tool may have started: an agent reports it when it runs.
const toolStarts = 5 * time.Second

// truncated truncates an output of that size at the limit, if it exceeds it.
func (s *supervision) truncated(f *os.File, size int64) bool {
	return s.call.Output > 0 && size > s.call.Output && f.Truncate(s.call.Output) == nil
}

// size returns the size of an open file, or 0.
func size(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// finishOutputs truncates the outputs at their limit and syncs them. The record names the limit that stdout exceeded,
// and whether the agent put something else in the place of stdout.
func (s *supervision) finishOutputs() error {
	if s.stdout == nil || s.stderr == nil {
		return nil // the agent never started
	}
	if s.call.Output > 0 && size(s.stdout) > s.call.Output {
		s.rec.Overflow = true
	}
	if s.rec.Overflow {
		s.rec.Limit = s.call.Output
	}
	s.rec.Replaced = replaced(s.stdout, s.call.Stdout)
	for _, f := range []*os.File{s.stdout, s.stderr} {
		if s.call.Output > 0 && size(f) > s.call.Output {
			if err := f.Truncate(s.call.Output); err != nil {
				return err
			}
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// replaced reports whether a path does not lead to the open file.
func replaced(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Lstat(path)
	return err != nil || !os.SameFile(opened, named)
}
