package environ

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotFound means that a program does not exist.
var ErrNotFound = errors.New("program not found")

// Value returns the value of a variable, or "".
func Value(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// LookPath finds a program in the PATH of an environment. A name with a slash is a path. Folders in which others choose
// what a program is are refused: entries of PATH are skipped.
func LookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if why := unsafe(filepath.Dir(name)); why != "" {
			return "", fmt.Errorf("%w: %s is not executed: its folder %s", ErrNotFound, name, why)
		}
		return name, Executable(name)
	}
	search, refused := Value(env, "PATH"), ""
	for _, dir := range filepath.SplitList(search) {
		path := filepath.Join(dir, name)
		if Executable(path) != nil {
			continue
		}
		why := unsafe(dir)
		if why == "" {
			return path, nil
		}
		refused = fmt.Sprintf(": the entry %q has it and %s: remove the entry from PATH", dir, why)
	}
	return "", fmt.Errorf("%w in PATH (%s)%s", ErrNotFound, search, refused)
}

// unsafe reports why others choose what a program in a folder is; empty: they do not.
func unsafe(dir string) string {
	info, err := os.Stat(dir)
	switch {
	case !filepath.IsAbs(dir):
		return "is not an absolute path"
	case strings.HasPrefix(filepath.Clean(dir)+"/", "/proc/"):
		return "is that of a process"
	case err == nil && info.Mode().Perm()&0o002 != 0:
		return "can be written by other users"
	}
	return ""
}

// Executable reports why a file cannot be executed; nil: it can.
func Executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: no file %s", ErrNotFound, path)
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: %w: not an executable file", path, fs.ErrPermission)
	}
	return nil
}

type key struct{}

// WithVariables returns a context with these variables.
func WithVariables(ctx context.Context, variables []string) context.Context {
	return context.WithValue(ctx, key{}, append([]string{}, variables...)) // an empty list differs from nil
}

// FromContext returns the variables of a context. nil: none; use those of this process.
func FromContext(ctx context.Context) []string {
	variables, _ := ctx.Value(key{}).([]string)
	return variables
}

// Merge returns env with the variables of the context replacing those of the same name.
func Merge(ctx context.Context, env []string) []string {
	variables := FromContext(ctx)
	if variables == nil {
		return env
	}
	replaced := map[string]bool{}
	for _, pair := range variables {
		name, _, _ := strings.Cut(pair, "=")
		replaced[name] = true
	}
	var out []string
	for _, pair := range env {
		if name, _, _ := strings.Cut(pair, "="); !replaced[name] {
			out = append(out, pair)
		}
	}
	return append(out, variables...)
}

// Program returns the path of a program that is started with env, or a name that no folder has.
func Program(name string, env []string) string {
	if path, err := LookPath(name, env); err == nil {
		return path
	}
	return name + " (not found)"
}
