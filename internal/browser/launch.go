package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/passbook-run/passbook/internal/environ"
)

// chromium is a running browser.
type chromium struct {
	ctx     context.Context // of the browser's first, empty tab
	stop    context.CancelFunc
	profile string
	temp    string // temporary files
	group   int    // process group
	site    *site
}

// A browser creates a socket of this name in its temporary folder, and does not start if the path exceeds the
// system's limit (Linux: 107 bytes, macOS: 103).
const (
	socketName    = "/org.chromium.Chromium.XXXXXX/SingletonSocket"
	maxSocketPath = 103
)

// launch starts a browser in its own process group with an empty profile. It ends with ctx.
func launch(ctx context.Context, path, tempDir string, s *site) (*chromium, error) {
	profile, err := os.MkdirTemp(tempDir, "passbook-browser-")
	if err != nil {
		return nil, err
	}
	b := &chromium{profile: profile, temp: profile, site: s}
	if len(profile)+len(socketName) > maxSocketPath {
		if b.temp, err = os.MkdirTemp("/tmp", "passbook-socket-"); err != nil {
			return nil, errors.Join(err, os.RemoveAll(profile))
		}
	}
	opts := append(flags(s),
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoInheritEnv,
		chromedp.Env(append(environment(environ.Merge(ctx, os.Environ())), "TMPDIR="+b.temp)...),
		chromedp.ModifyCmdFunc(ownGroup),
	)
	alloc, stop := chromedp.NewExecAllocator(ctx, opts...)
	b.stop = stop // waits for the process
	quiet := func(string, ...any) {}
	// Its cancel is not needed: stop ends the parent of this context.
	b.ctx, _ = chromedp.NewContext(alloc, chromedp.WithLogf(quiet), chromedp.WithErrorf(quiet))
	err = chromedp.Do(b.ctx)
	if p := chromedp.FromContext(b.ctx).Browser; p != nil && p.Process() != nil {
		b.group = p.Process().Pid
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// close kills the browser's process group, waits for its leader, and removes its files.
func (b *chromium) close() error {
	b.stop()
	if b.group > 0 {
		_ = syscall.Kill(-b.group, syscall.SIGKILL)
	}
	// A child that is just dying may still add a file.
	var err error
	for range 50 {
		if err = errors.Join(os.RemoveAll(b.profile), os.RemoveAll(b.temp)); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("remove the browser's profile: %w", err)
}

// ownGroup kills the process group when the context ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
}

// environment returns the variables that a browser needs; others may contain secrets.
func environment(all []string) []string {
	env := []string{"TZ=UTC", "LANG=C.UTF-8"}
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "HOME", "PATH", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "XDG_CACHE_HOME",
			"XDG_CONFIG_HOME",
			"XDG_DATA_DIRS":
			env = append(env, v)
		}
	}
	return env
}

func flags(s *site) []chromedp.ExecAllocatorOption {
	values := map[string]any{
		"headless":                     "new",
		"disable-gpu":                  true,
		"no-first-run":                 true,
		"no-default-browser-check":     true,
		"mute-audio":                   true,
		"hide-scrollbars":              true,
		"font-render-hinting":          "none",
		"force-color-profile":          "srgb",
		"force-device-scale-factor":    "1",
		"force-prefers-reduced-motion": true,
		"lang":                         "en-US",
		"disable-dev-shm-usage":        true,
		"password-store":               "basic",
		"use-mock-keychain":            true,

		// Nothing but the page: the browser's own traffic, and all names and
		// addresses but one. A request that passes the interception of the
		// tab, such as a WebSocket, ends at this rule.
		"host-resolver-rules":                    "MAP " + s.addr + " " + s.addr + ", MAP * ~NOTFOUND",
		"no-proxy-server":                        true,
		"webrtc-ip-handling-policy":              "disable_non_proxied_udp",
		"disable-quic":                           true,
		"disable-background-networking":          true,
		"disable-component-update":               true,
		"disable-client-side-phishing-detection": true,
		"safebrowsing-disable-auto-update":       true,
		"disable-domain-reliability":             true,
		"disable-sync":                           true,
		"metrics-recording-only":                 true,
		"disable-breakpad":                       true,
		"disable-crash-reporter":                 true,
		"disable-default-apps":                   true,
		"disable-extensions":                     true,
		"block-new-web-contents":                 true,
		"disable-features": "Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider,AcceptCHFrame," +
			"InterestFeedContentSuggestions",

		// A window that is not in front draws as well as any other.
		"disable-background-timer-throttling":    true,
		"disable-backgrounding-occluded-windows": true,
		"disable-renderer-backgrounding":         true,
		"disable-ipc-flooding-protection":        true,

		// Chromium refuses to run as root with its sandbox.
		"no-sandbox": os.Geteuid() == 0,
	}
	var opts []chromedp.ExecAllocatorOption
	for _, name := range slices.Sorted(maps.Keys(values)) {
		opts = append(opts, chromedp.Flag(name, values[name]))
	}
	return opts
}
