package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
)

// What the directory of a delivery contains, besides the files of its supervisor.
const (
	StdoutFile = "stdout" // of the agent
	StderrFile = "stderr"
	PromptFile = "prompt.md"
	WorkerFile = "worker.json" // the identity of the worker that waits for it
	WorkDir    = "work"        // the working directory of an agent without a workspace
)

// Within has a command use the files of a delivery.
func Within(dir string, cmd *agent.Command) {
	cmd.Mark, cmd.Prompt = dir, filepath.Join(dir, PromptFile)
	cmd.Stdout, cmd.Stderr = filepath.Join(dir, StdoutFile), filepath.Join(dir, StderrFile)
}

// Outputs is the output of a Finished child. Problem describes why Stdout is incomplete.
type Outputs struct {
	Stdout, Stderr []byte
	Problem        string
}

// ReadOutputs reads the output of a Finished child, at most limit bytes of each file.
func ReadOutputs(dir string, limit int64) (out Outputs, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		out.Problem = StdoutFile + ": no such file"
		return out, nil
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	out.Stdout, out.Problem, err = ReadFileIn(root, StdoutFile, limit)
	if errors.Is(err, fs.ErrNotExist) {
		out.Problem, err = StdoutFile+": no such file", nil
	}
	if err != nil {
		return out, err
	}
	out.Stderr, _, err = ReadFileIn(root, StderrFile, limit)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return out, err
}

// ReadFileIn reads a file that an agent wrote below root, without blocking on a pipe or following a symlink out of
// root. problem describes why it cannot be used; data is what could be read. err is fs.ErrNotExist or a problem of the
// host.
func ReadFileIn(root *os.Root, name string, limit int64) (data []byte, problem string, err error) {
	data, problem, err = readBounded(root, name, limit)
	if err == nil || errors.Is(err, fs.ErrNotExist) || tree.Passing(err) {
		return data, problem, err
	}
	if other := (*disk.KindError)(nil); errors.As(err, &other) {
		return nil, other.Error(), nil
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return nil, name + ": " + err.Error(), nil
}

func readBounded(root *os.Root, name string, limit int64) (data []byte, problem string, err error) {
	f, err := disk.OpenIn(root, name)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	if info.Size() > limit {
		problem = fmt.Sprintf("%s is larger than %s (limits.output)", name, pipeline.Bytes(limit))
	}
	data = make([]byte, min(info.Size(), limit))
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // another process truncated it
	}
	return data[:n], problem, err
}

// CheckWorkDir describes a problem with the agent's working directory; empty: none. err is fs.ErrNotExist or a
// problem of the host.
func CheckWorkDir(dir string) (problem string, err error) {
	fi, err := os.Lstat(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return "the scratch directory is not a directory", nil
	case err != nil:
		return "", err
	case !fi.IsDir():
		return "the working directory is not a directory: it is " + disk.Kind(fi.Mode()), nil
	}
	return "", nil
}

// CreateFolder creates the directories of a claimed delivery. Whatever has their names is removed: an agent may have
// left something there that blocks the next delivery or leads it elsewhere.
func CreateFolder(delivery, work string) error {
	call := filepath.Dir(delivery)
	if info, err := os.Lstat(call); err == nil && !info.IsDir() {
		if err := os.Remove(call); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(call, 0o700); err != nil {
		return err
	}
	if err := disk.RemoveAll(delivery); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(delivery, 0o700), os.Mkdir(work, 0o700))
}

// RemoveFolder removes the directory of a delivery, since it contains prompt and output with secrets, except for one
// directory below it; empty: none.
func RemoveFolder(dir, keep string) error {
	return errors.Join(RemoveExcept(dir, keep), removeEmpty(filepath.Dir(dir)))
}

// removeEmpty removes the folder of a call unless another delivery uses it.
func removeEmpty(call string) error {
	err := os.Remove(call)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// RemoveExcept removes a scratch directory except for one directory below it; empty: none.
func RemoveExcept(dir, keep string) error {
	if keep == "" || !strings.HasPrefix(keep, dir+"/") {
		return disk.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if path == keep {
			continue
		}
		if err := RemoveExcept(path, keep); err != nil {
			return err
		}
	}
	return nil
}

// Finished reports whether the child of a delivery has ended, so that its output can be read.
func Finished(dir string) bool {
	_, err := supervisor.ReadExit(dir)
	var spawn *supervisor.SpawnError
	return err == nil || errors.As(err, &spawn)
}

// FinishedDeliveries returns the directories of a call's finished deliveries on this host.
func FinishedDeliveries(scratch, call string) (dirs []string) {
	root := filepath.Join(scratch, FolderName(call))
	deliveries, err := os.ReadDir(root)
	if err != nil {
		return nil // no delivery on this host
	}
	for _, d := range deliveries {
		if dir := filepath.Join(root, d.Name()); Finished(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// WriteIdentity records the worker that waits for a delivery.
func WriteIdentity(dir string, id process.Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, WorkerFile), raw)
}
