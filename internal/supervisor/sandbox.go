package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// sandboxReport is what bwrap reports: one object on a line for its start, and one for the agent's exit.
type sandboxReport struct {
	PID  int  `json:"child-pid"` // the sandbox's first process, leader of the agent's group and session
	Code *int `json:"exit-code"` // nil: the agent has not started, or was killed with its sandbox
}

func (s *supervision) sandboxReport() (r sandboxReport) {
	if s.report == nil {
		return r
	}
	const most = 4 << 10
	raw := make([]byte, most)
	n, err := s.report.ReadAt(raw, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return r
	}
	raw = raw[:n]
	for line := range bytes.Lines(raw) {
		if json.Unmarshal(line, &r) != nil {
			break // only the last one can be incomplete
		}
	}
	return r
}

// signalSandbox signals the agent's group. bwrap itself gets no SIGTERM: it would kill the sandbox at once. The
// sandbox's first process ignores SIGTERM; SIGKILL ends everything in it.
func (s *supervision) signalSandbox(sig syscall.Signal) bool {
	r := s.sandboxReport()
	return r.PID > 0 && syscall.Kill(-r.PID, sig) == nil && sig != syscall.SIGKILL
}

// maxSignal is the last signal with a name. Shells and bwrap report a signal n as the exit code 128+n.
const maxSignal = 31

// readSandboxExit replaces bwrap's exit with the agent's.
func (s *supervision) readSandboxExit() {
	r := s.sandboxReport()
	switch {
	case !s.ending && s.rec.Signal == "" && (r.Code == nil || s.entered != nil && !<-s.entered):
		s.rec.Spawn = &spawnError{Path: s.call.Path, Text: "start the sandbox: " + s.complaint()}
		s.rec.Code = -1
	case r.Code != nil && *r.Code > 128 && *r.Code <= 128+maxSignal:
		s.rec.Code, s.rec.Signal = -1, syscall.Signal(*r.Code-128).String()
	}
}

// complaint returns the last line of stderr, where bwrap explains why it failed.
func (s *supervision) complaint() string {
	const most = 4 << 10
	f, err := os.OpenFile(s.call.Stderr, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err.Error()
	}
	raw := make([]byte, most)
	n, err := f.ReadAt(raw, max(0, size(s.stderr)-most))
	if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	text := strings.TrimSpace(string(raw[:n]))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// endPasta ends the process that forwards packets.
func (s *supervision) endPasta() {
	if pid := s.pasta.Swap(0); pid > 0 {
		_ = syscall.Kill(int(pid), syscall.SIGKILL)
	}
}
