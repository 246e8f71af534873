package unit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/durable"
)

// Manager is the service manager of this user.
type Manager struct {
	Program string // systemctl or launchctl
	dir     string // where it looks for files
	suffix  string
	target  string // launchd's domain of this user
}

// Of returns the service manager of an operating system. home is the user's; config is XDG_CONFIG_HOME, or empty.
func Of(goos, home, config string, uid int) (Manager, error) {
	switch goos {
	case "linux":
		if config == "" {
			config = filepath.Join(home, ".config")
		}
		return Manager{Program: "systemctl", dir: filepath.Join(config, "systemd", "user"), suffix: ".service"}, nil
	case "darwin":
		return Manager{Program: "launchctl", dir: filepath.Join(home, "Library", "LaunchAgents"), suffix: ".plist",
			target: fmt.Sprintf("gui/%d", uid)}, nil
	}
	return Manager{}, fmt.Errorf("no service manager is known on %s: `starter server start` starts the keeper itself",
		goos)
}

func (m Manager) launchd() bool { return m.target != "" }

// id is the service's name for the manager.
func (m Manager) id(s Service) string {
	if m.launchd() {
		return s.Label()
	}
	return s.Name() + m.suffix
}

// File is where the service's file is, or would be.
func (m Manager) File(s Service) string {
	return filepath.Join(m.dir, strings.TrimSuffix(m.id(s), m.suffix)+m.suffix)
}

// Installed reports whether the service has a file.
func (m Manager) Installed(s Service) bool {
	_, err := os.Stat(m.File(s))
	return err == nil
}

// command is one call of the manager's program.
type command struct {
	args    []string
	mayFail bool // what it ends may not be there
}

// commands are what the manager is asked, by what is wanted.
func (m Manager) commands(what string, s Service) []command {
	id := m.id(s)
	if m.launchd() {
		unload := command{[]string{"bootout", m.target + "/" + id}, true}
		return map[string][]command{
			"install":   {unload, {args: []string{"bootstrap", m.target, m.File(s)}}},
			"start":     {{args: []string{"kickstart", m.target + "/" + id}}},
			"uninstall": {unload},
		}[what]
	}
	user := func(args ...string) command { return command{args: append([]string{"--user"}, args...)} }
	return map[string][]command{
		"check":     {user("show-environment")},
		"install":   {user("daemon-reload"), user("enable", id), user("restart", id)},
		"start":     {user("start", id)},
		"uninstall": {user("disable", "--now", id)},
		"removed":   {user("daemon-reload")},
	}[what]
}

func (m Manager) ask(ctx context.Context, what string, s Service) error {
	for _, c := range m.commands(what, s) {
		out, err := exec.CommandContext(ctx, m.Program, c.args...).CombinedOutput()
		if err != nil && !c.mayFail {
			return fmt.Errorf("%s %s: %w: %s", m.Program, strings.Join(c.args, " "), err,
				strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// Install writes the service's file, enables it and restarts it. Where the manager does not answer nothing is written.
func (m Manager) Install(ctx context.Context, s Service, log string) (file string, err error) {
	if err := m.ask(ctx, "check", s); err != nil {
		return "", fmt.Errorf("install the service: no service manager answers for this user: %w", err)
	}
	text, err := m.text(s, log)
	if err != nil {
		return "", err
	}
	file = m.File(s)
	if err := (durable.Disk{}).Mkdir(m.dir, 0o755); err != nil {
		return file, fmt.Errorf("install the service: %w", err)
	}
	if err := (durable.Disk{}).WriteFile(file, text, 0o600); err != nil {
		return file, fmt.Errorf("install the service: %w", err)
	}
	if err := m.ask(ctx, "install", s); err != nil {
		return file, fmt.Errorf("install the service: %w", err)
	}
	return file, nil
}

func (m Manager) text(s Service, log string) ([]byte, error) {
	if m.launchd() {
		return s.Launchd(log)
	}
	return s.Systemd()
}

// Start has the manager start an installed service.
func (m Manager) Start(ctx context.Context, s Service) error { return m.ask(ctx, "start", s) }

// Uninstall stops the service and removes its file. was is false when none was installed.
func (m Manager) Uninstall(ctx context.Context, s Service) (was bool, err error) {
	if was = m.Installed(s); !was {
		return false, nil
	}
	err = m.ask(ctx, "uninstall", s)
	if e := os.Remove(m.File(s)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if err == nil {
		err = m.ask(ctx, "removed", s)
	}
	if err != nil {
		return true, fmt.Errorf("uninstall the service: %w", err)
	}
	return true, nil
}
