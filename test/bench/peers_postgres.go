package main

import (
	"context"
	"crypto/rand"
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

// postgres is a PostgreSQL server with its default settings, on loopback. Root's runs as another user.
type postgres struct {
	bin, dir string
	port     string
	password string
	d        *daemon
}

// findPostgres returns the folder of the newest PostgreSQL's programs, of Debian's or Homebrew's, or of those in PATH.
func findPostgres() (string, error) {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		found, err := filepath.Glob(filepath.Join(pattern, "initdb"))
		if err == nil && len(found) > 0 {
			slices.Sort(found)
			return filepath.Dir(found[len(found)-1]), nil
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("PostgreSQL not found; install it (Debian: apt-get install postgresql, macOS: brew " +
			"install postgresql@16)")
	}
	return filepath.Dir(path), nil
}

func (p *postgres) data() string { return filepath.Join(p.dir, "postgres") }

func (p *postgres) start(ctx context.Context) (string, []string, error) {
	if _, err := os.Stat(p.data()); os.IsNotExist(err) {
		if err := p.create(ctx); err != nil {
			return "", nil, err
		}
	}
	cmd, err := p.command("postgres", "-D", p.data(), "-h", "127.0.0.1", "-p", p.port, "-k", "")
	if err != nil {
		return "", nil, err
	}
	p.d, err = launch(ctx, cmd, func() error {
		return exec.CommandContext(ctx, filepath.Join(p.bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", p.port).Run()
	})
	return "postgres://bench:" + p.password + "@127.0.0.1:" + p.port + "/postgres?sslmode=disable", nil, err
}

// create makes the database's files.
func (p *postgres) create(ctx context.Context) (err error) {
	if p.port, err = freePort(); err != nil {
		return err
	}
	p.password = rand.Text()
	secret := filepath.Join(p.dir, "password")
	err = errors.Join(os.MkdirAll(p.data(), 0o700), os.WriteFile(secret, []byte(p.password), 0o600))
	if err != nil {
		return err
	}
	cmd, err := p.command("initdb", "-D", p.data(), "-U", "bench", "--auth=scram-sha-256", "--pwfile="+secret,
		"--encoding=UTF8", "--no-locale")
	if err != nil {
		return err
	}
	if c := cmd.SysProcAttr; c != nil && c.Credential != nil {
		uid, gid := int(c.Credential.Uid), int(c.Credential.Gid)
		if err := errors.Join(os.Chown(p.data(), uid, gid), os.Chown(secret, uid, gid)); err != nil {
			return err
		}
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, output)
	}
	return ctx.Err()
}

// command is a program of PostgreSQL, which refuses to run as root.
func (p *postgres) command(name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = "/"
	if os.Getuid() != 0 {
		return cmd, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return cmd, nil
}

func (p *postgres) stop(context.Context) error {
	if p.d == nil {
		return nil
	}
	err := p.d.stop(syscall.SIGINT) // fast shutdown
	p.d = nil
	return err
}

func (p *postgres) processes() []int { return []int{p.d.cmd.Process.Pid} }

func (p *postgres) stored() (int64, error) { return bytesIn(filepath.Join(p.data(), "base")) }
