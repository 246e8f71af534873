package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/run"
)

// Failure is a failed attempt.
type Failure struct {
	Category    run.Category `json:"category"`
	Message     string       `json:"message"`
	Permanent   bool         `json:"permanent,omitempty"` // a retry cannot succeed
	Cause       limits.Kind  `json:"cause,omitempty"`     // why the provider did not answer
	Until       time.Time    `json:"until,omitzero"`      // when it answers again; zero: unknown
	ExitCode    int          `json:"exit_code"`
	Diagnostics string       `json:"diagnostics"` // at most 2000 characters
}

// NewFailure returns a failure that is retried as its category defines. A classifier may override Permanent.
func NewFailure(category run.Category, message string, exitCode int) *Failure {
	f := &Failure{Message: message, ExitCode: exitCode}
	f.setCategory(category)
	return f
}

// setCategory changes the category of a failure.
func (f *Failure) setCategory(category run.Category) {
	row := category.Info()
	f.Category = category
	f.Permanent = row.Nature == run.Permanent || row.Retry == run.RetryNever
}

// maxDiagnostics is the limit of requirement 002 §1.5, in characters.
const maxDiagnostics = 2000

// SpawnFailure classifies an error of Start: a missing or unusable program is permanent, a lack of processes or
// memory is not, and a prompt or output file that cannot be opened is file-io.
func SpawnFailure(err error) *Failure {
	f := NewFailure(run.CategorySpawnFailed, err.Error(), -1)
	f.Diagnostics = lastChars(err.Error(), maxDiagnostics)
	var path *fs.PathError
	switch {
	case errors.Is(err, ErrNotFound):
		f.ExitCode = 127
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE),
		errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ETXTBSY):
		f.Permanent = false
	case errors.As(err, &path) && path.Op != "fork/exec":
		f.setCategory(run.CategoryFileIO)
	}
	return f
}

// CannotRun reports whether an exit code of a shell means that a command was not found or could not be executed.
func CannotRun(code int) bool { return code == 126 || code == 127 }

// CommandFailure is the failure of a command that could not run. What the shell printed names it.
func CommandFailure(command string, code int, stdout, stderr string) *Failure {
	f := NewFailure(run.CategorySpawnFailed, fmt.Sprintf("the command %q could not run (exit code %d)%s",
		run.Cut(command, 100), code, lastWords(stderr, stdout, "")), code)
	f.Diagnostics = diagnose(stderr, stdout)
	return f
}

// diagnose returns the ends of stderr and stdout, which explain more than the beginnings.
func diagnose(stderr, stdout string) string {
	var parts []string
	for _, part := range []struct{ name, text string }{{"stderr", stderr}, {"stdout", stdout}} {
		if text := strings.TrimSpace(strings.ToValidUTF8(part.text, "?")); text != "" {
			parts = append(parts, part.name+": "+lastChars(text, maxDiagnostics/2-len("stderr: ")-1))
		}
	}
	return strings.Join(parts, "\n")
}

// lastChars keeps the last n characters.
func lastChars(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s[max(0, len(s)-utf8.UTFMax*n):]) // an output may be large
	return "…" + string(runes[len(runes)-n+1:])
}
