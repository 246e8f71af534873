package agent

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Category is one of the fifteen words of requirement 002 §1.5.
type Category string

// The categories. The first six and rate-limit come from this package; the others name what its callers find.
const (
	ExitNonzero          Category = "claude-p-exit-nonzero"
	TimedOut             Category = "claude-p-timeout"
	SpawnFailed          Category = "claude-p-spawn-failed"
	OutputTruncated      Category = "output-truncated"
	OutputEmpty          Category = "output-empty"
	FileIO               Category = "file-io"
	RateLimit            Category = "rate-limit"
	OutputNoArtifact     Category = "output-no-artifact"
	OutputNoModification Category = "output-no-modification"
	ValidationFailed     Category = "validation-failed"
	ScreenshotFailed     Category = "screenshot-failed"
	BudgetExceeded       Category = "budget-exceeded"
	StateCorruption      Category = "state-corruption"
	ConfigMismatch       Category = "config-mismatch"
	Unknown              Category = "unknown"
)

// Failure is a failed attempt.
type Failure struct {
	Category    Category `json:"category"`
	Message     string   `json:"message"` // for people
	RateLimited bool     `json:"rate_limited,omitempty"`
	Permanent   bool     `json:"permanent,omitempty"` // another attempt cannot help
	ExitCode    int      `json:"exit_code"`
	Diagnostics string   `json:"diagnostics"` // at most 2000 characters
}

// maxDiagnostics is the limit of requirement 002 §1.5, in characters.
const maxDiagnostics = 2000

// SpawnFailure classifies an error of Start: a missing or unusable program is permanent, a machine out of processes is not, and a
// prompt or output file that cannot be opened is file-io.
func SpawnFailure(err error) *Failure {
	f := &Failure{Category: SpawnFailed, Message: err.Error(), ExitCode: -1, Permanent: true, Diagnostics: clip(err.Error(), maxDiagnostics)}
	var path *fs.PathError
	switch {
	case errors.Is(err, ErrNotFound):
		f.ExitCode = 127
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ETXTBSY):
		f.Permanent = false
	case errors.As(err, &path) && path.Op != "fork/exec":
		f.Category, f.Permanent = FileIO, false
	}
	return f
}

// diagnose is what a person needs to understand a failed attempt: stderr, then what stdout held. Ends say more than beginnings.
func diagnose(stderr, stdout string) string {
	var parts []string
	for _, part := range []struct{ name, text string }{{"stderr", stderr}, {"stdout", stdout}} {
		if text := strings.TrimSpace(strings.ToValidUTF8(part.text, "?")); text != "" {
			parts = append(parts, part.name+": "+clip(text, maxDiagnostics/2-len("stderr: ")-1))
		}
	}
	return strings.Join(parts, "\n")
}

// clip keeps the last n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s[max(0, len(s)-utf8.UTFMax*n):]) // an output may be large
	return "…" + string(runes[len(runes)-n+1:])
}
