package local

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// binary is a server that can be run.
type binary struct {
	path    string
	version string // of the Temporal server in it: 1.32.1
	foreign bool   // the temporal CLI, or anything else that is not ours
}

var serverVersion = regexp.MustCompile(`Server (\d+\.\d+\.\d+)`)

// binary finds the server to run: the configured one, or the one built from the source, now or earlier.
func (o *Options) binary(ctx context.Context, progress func(string)) (binary, error) {
	path := o.Binary
	if path == "" {
		var err error
		if path, err = o.built(ctx, progress); err != nil {
			return binary{}, err
		}
	}
	return inspect(ctx, path)
}

// inspect asks a server for its version, on which its database depends.
func inspect(ctx context.Context, path string) (binary, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return binary{}, fmt.Errorf("the configured Temporal server %s: %w", path, err)
	}
	out, err := exec.CommandContext(ctx, found, "--version").CombinedOutput()
	if err != nil {
		return binary{}, fmt.Errorf("ask %s for its version: %w: %s", found, err, lastLine(out))
	}
	m := serverVersion.FindSubmatch(out)
	if m == nil {
		return binary{}, fmt.Errorf("%s is no Temporal server: --version says %q; want one with \"Server x.y.z\"", found, lastLine(out))
	}
	return binary{path: found, version: string(m[1]), foreign: !strings.HasPrefix(string(out), "passbook ")}, nil
}

// database is named by the minor version: no other may open it.
func (b binary) database() string {
	return "temporal-" + b.version[:strings.LastIndexByte(b.version, '.')] + ".db"
}
