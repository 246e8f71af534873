package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/disk"
)

const (
	module     = "github.com/passbook-run/passbook"
	sourcePath = "devserver" // in a checkout
	bundled    = "passbook-server"
)

// BuildNotice is the progress line before a build.
const BuildNotice = "building the Temporal server (first time only, a few minutes)"

// Cached returns the server program that [EnsureServer] would run without building one. ok is false if there is none.
func CachedServer(o ServerOptions) (path string, ok bool, err error) {
	if err := o.settle(); err != nil {
		return "", false, err
	}
	if o.Binary != "" {
		return o.Binary, true, nil
	}
	_, path, err = o.target()
	if err != nil {
		return "", false, err
	}
	_, err = os.Stat(path)
	return path, err == nil, nil
}

// Build builds the server program that [EnsureServer] would run, if it is missing, and returns its path. It starts nothing.
func BuildServer(ctx context.Context, o ServerOptions, progress func(string)) (string, error) {
	if err := o.settle(); err != nil {
		return "", err
	}
	if o.Binary != "" {
		return o.Binary, nil
	}
	return o.built(ctx, progress)
}

// target returns the source folder and the path of the program that is built from it. A release has the program beside
// the starter. Outside of a checkout the program is the last one that was built on this machine. Without one, a program
// that the go command installed has the source in the module of its version, which source then names.
func (o *ServerOptions) target() (source, path string, err error) {
	if exe, err := os.Executable(); err == nil {
		if path := serverBeside(exe); path != "" {
			return "", path, nil
		}
	}
	source, err = o.source()
	if errors.Is(err, errNoSource) {
		if last := o.lastBuilt(); last != "" {
			return "", last, nil
		}
		if version := build.Version(); version != build.Devel {
			source, err = module+"/"+sourcePath+"@"+version, nil
		}
	}
	if err != nil {
		return "", "", err
	}
	key, err := sourceKey(source)
	if err != nil {
		return "", "", fmt.Errorf("read the server's source: %w", err)
	}
	if err := o.settleCache(); err != nil {
		return "", "", err
	}
	return source, filepath.Join(o.CacheDir, "devserver-"+key), nil
}

// serverBeside returns the server program of the release that a program belongs to; "": it belongs to none. The program
// may be a link to that of the release.
func serverBeside(program string) string {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(program), bundled)
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}

// lastBuilt is the newest server program in the cache; "": there is none.
func (o *ServerOptions) lastBuilt() (path string) {
	if o.settleCache() != nil {
		return ""
	}
	programs, err := filepath.Glob(filepath.Join(o.CacheDir, "devserver-*"))
	if err != nil {
		return ""
	}
	var newest time.Time
	for _, name := range programs {
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() && filepath.Ext(name) == "" && info.ModTime().After(newest) {
			path, newest = name, info.ModTime()
		}
	}
	return path
}

// settleCache finds the folder of built servers. A server that runs is found without it.
func (o *ServerOptions) settleCache() error {
	if o.CacheDir != "" {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the built Temporal server: no cache directory: %w", err)
	}
	o.CacheDir = filepath.Join(cache, "passbook")
	return nil
}

// built returns the server program built from the source. The cache keeps one for each version of the source.
func (o *ServerOptions) built(ctx context.Context, progress func(string)) (string, error) {
	source, path, err := o.target()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := (disk.Disk{}).Mkdir(o.CacheDir, 0o700); err != nil {
		return "", err
	}
	lock, err := hold(ctx, o.CacheDir, "building the Temporal server", progress)
	if err != nil {
		return "", fmt.Errorf("build the Temporal server: %w", err)
	}
	err = buildOnce(ctx, source, path, progress)
	return path, errors.Join(err, lock.Unlock())
}

// buildOnce builds unless another starter built it meanwhile. Only a complete program gets the name.
func buildOnce(ctx context.Context, source, path string, progress func(string)) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if progress != nil {
		progress(BuildNotice)
	}
	// The flags are those of scripts/goflags, so that the build cache has compiled most packages. The stamp of the version
	// control is omitted: git refuses a checkout of another user.
	if isVersion(source) {
		var err error
		if source, err = download(ctx, source); err != nil {
			return err
		}
	}
	flags := []string{"-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-w"}
	workspace, err := goCommand(ctx, source, "off", "run", append(flags, "./reduce")...)
	if err == nil {
		_, err = goCommand(ctx, source, workspace, "build", append(flags, "-o", path+".new", ".")...)
	}
	if err != nil {
		return err
	}
	return disk.Disk{}.Rename(path+".new", path)
}

// download returns the folder of a module in the module cache.
func download(ctx context.Context, version string) (string, error) {
	out, err := goCommand(ctx, os.TempDir(), "off", "mod", "download", "-json", version)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		return "", fmt.Errorf("download %s: %w", version, err)
	}
	return m.Dir, nil
}

// goCommand returns the output of a go command in the server's source. It ignores a workspace of the user.
func goCommand(ctx context.Context, source, workspace, verb string, args ...string) (string, error) {
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{verb}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = source, &out, &messages
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+workspace)
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("build the Temporal server: Go is not installed; install it, set a server binary, or set " +
			"TEMPORAL_ADDRESS to a running server")
	case err != nil:
		return "", fmt.Errorf("build the Temporal server in %s: go %s: %w\n%s", source, verb, err,
			strings.TrimSpace(messages.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// source returns the server's source folder: in the configured checkout, or above the executable or the working
// directory.
func (o *ServerOptions) source() (string, error) {
	if o.SourceDir != "" {
		if !isCheckout(o.SourceDir) {
			return "", fmt.Errorf("build the Temporal server: %s is not a checkout of %s with a %s folder", o.SourceDir,
				module,
				sourcePath)
		}
		return filepath.Join(o.SourceDir, sourcePath), nil
	}
	var starts []string
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	if cwd, err := os.Getwd(); err == nil {
		starts = append(starts, cwd)
	}
	for _, start := range starts {
		if dir, ok := checkoutAbove(start); ok {
			return filepath.Join(dir, sourcePath), nil
		}
	}
	return "", errNoSource
}

var errNoSource = errors.New("no Temporal server runs on this machine, none is configured, and its source is not " +
	"found: set TEMPORAL_ADDRESS to a running server, set a server binary (such as the temporal CLI), or start " +
	"in a checkout of Passbook")

func checkoutAbove(dir string) (string, bool) {
	for {
		if isCheckout(dir) {
			return dir, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

func isCheckout(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mod)) {
		if strings.TrimSpace(line) == "module "+module {
			_, err := os.Stat(filepath.Join(dir, sourcePath, "go.mod"))
			return err == nil
		}
	}
	return false
}

// sourceKey identifies everything that goes into the program: the version of a module, or the sources, and with go.sum
// their imports.
func sourceKey(source string) (string, error) {
	h := sha256.New()
	if isVersion(source) {
		_, err := io.WriteString(h, source)
		return hex.EncodeToString(h.Sum(nil))[:16], err
	}
	err := filepath.WalkDir(source, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isInput(e.Name()) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(source, path)
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// isVersion reports whether the source is that of a module version, and not a folder.
func isVersion(source string) bool { return strings.HasPrefix(source, module+"/"+sourcePath+"@") }

func isInput(name string) bool {
	return name == "go.mod" || name == "go.sum" || strings.HasSuffix(name, ".go") &&
		!strings.HasSuffix(name, "_test.go")
}
