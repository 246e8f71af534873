package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// findPostgres returns the folder of PostgreSQL's programs: the newest of Debian's or Homebrew's, or that of initdb in
// PATH.
func findPostgres() (string, error) {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin"} {
		found, err := filepath.Glob(filepath.Join(pattern, "initdb"))
		if err == nil && len(found) > 0 {
			slices.Sort(found)
			return filepath.Dir(found[len(found)-1]), nil
		}
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errors.New("PostgreSQL not found; install it (Debian: apt-get install postgresql, macOS: brew " +
		"install postgresql@16)")
}

// initDatabase creates the database's files, once, with the name and password of docker-compose.yml.
func initDatabase(ctx context.Context, s settings, processes []process) error {
	if _, err := os.Stat(filepath.Join(s.database(), "PG_VERSION")); err == nil {
		return nil
	}
	i := slices.IndexFunc(processes, func(p process) bool { return p.Name == "postgres" })
	if i < 0 {
		return errors.New("docker-compose.yml has no service postgres")
	}
	name, password := processes[i].Env["POSTGRES_USER"], processes[i].Env["POSTGRES_PASSWORD"]
	home := filepath.Dir(s.database())
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	secret := filepath.Join(home, "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "initdb", "-D", s.database(), "-U", name, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale")
	cmd.Dir = home
	if err := asOwner(cmd); err != nil {
		return err
	}
	if c := cmd.SysProcAttr; c != nil { // the owner needs both
		uid, gid := int(c.Credential.Uid), int(c.Credential.Gid)
		if err := errors.Join(os.Chown(home, uid, gid), os.Chown(secret, uid, gid)); err != nil {
			return err
		}
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	return os.Remove(secret)
}

// asOwner runs root's PostgreSQL as another user, because it refuses to run as root.
func asOwner(cmd *exec.Cmd) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return fmt.Errorf("PostgreSQL does not run as root, and no user to run it as; create the user postgres: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

// ours reports whether a folder belongs to this user.
func ours(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to another user; choose a folder with CLUSTER_DIR", dir)
	}
	return nil
}
