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

// ErrNotFound says that there is no such program.
var ErrNotFound = errors.New("program not found")

// Value is that of a variable, or empty.
func Value(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// LookPath finds a program in the PATH of an environment. A name with a slash is a path already. Folders of PATH that are not absolute are left out:
// nobody can tell what they are relative to.
func LookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, Executable(name)
	}
	search := Value(env, "PATH")
	for _, dir := range filepath.SplitList(search) {
		path := filepath.Join(dir, name)
		if filepath.IsAbs(path) && Executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: looked in PATH (%s)", ErrNotFound, search)
}

// Executable says why a file is no program that can be started; nil: it is one.
func Executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no file %s", ErrNotFound, path)
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: %w: it is no program, or may not be executed", path, fs.ErrPermission)
	}
	return nil
}

type key struct{}

// With is a context of work that is done with these variables.
func With(ctx context.Context, variables []string) context.Context {
	return context.WithValue(ctx, key{}, append([]string{}, variables...)) // none is not the same as nil
}

// Of gives the variables of a context. nil: it has none, and those of this process count.
func Of(ctx context.Context) []string {
	variables, _ := ctx.Value(key{}).([]string)
	return variables
}

// Over is an environment in which the variables of the context have replaced those of the same names. Without any it is env itself.
func Over(ctx context.Context, env []string) []string {
	variables := Of(ctx)
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

// Program is the path of a program that is started with env. One that its PATH does not have is left to the PATH of this process.
func Program(name string, env []string) string {
	if path, err := LookPath(name, env); err == nil {
		return path
	}
	return name
}
