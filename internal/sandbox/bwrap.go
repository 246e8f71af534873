package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// StatusFD is the file descriptor on which bwrap reports the sandbox's first process and the agent's exit.
const StatusFD = 3

// Call is what runs in a sandbox.
type Call struct {
	Held
	Bwrap      string
	Path       string   // the program, absolute
	Argv       []string // with the program's name first
	Environ    []string
	Delivery   string // the directory of the call, absolute; the sandbox does not show it
	Work       string // the working directory, writable
	Objects    string // of the repository that the one in the working directory shares objects with; may be empty
	Brief      bool   // it stores nothing: no directory is created in the home
	Files      bool   // arguments that are absolute paths of files are visible
	Read       []string
	Write      []string
	Pasta      string   // of [Host]
	Supervisor []string // the program that prepares the network and becomes the agent, with its first arguments
	Offered    []string // addresses of the settings: their names may be of private networks
	Private    []string // hidden below the directories of the system: see [Host]
	Hidden     []string // directories that are not shown as a side effect: the state directory, runs
}

// Folders in the directory of the call.
const (
	homeFolder = "home"
	tempFolder = "tmp"
)

// Wrap creates the private home and temporary directory of a call, and returns the arguments of bwrap, with its name
// first, that start the call.
func (c Call) Wrap() ([]string, error) {
	home := c.value("HOME")
	for _, dir := range []string{homeFolder, tempFolder} {
		if err := os.MkdirAll(filepath.Join(c.Delivery, dir), 0o700); err != nil {
			return nil, fmt.Errorf("create the sandbox of a call: %w", err)
		}
	}
	args := append([]string{Program}, namespaceArgs()...)
	if c.Isolated() {
		args = append(args, "--unshare-net")
	}
	args = append(args, "--json-status-fd", fmt.Sprint(StatusFD))
	args = append(append(append(args, systemArgs()...), maskArgs(c.Private)...), kernelArgs()...)
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} { // on disk: memory would be unlimited
		args = append(args, "--bind", filepath.Join(c.Delivery, tempFolder), dir)
	}
	b := binds{call: c, home: home, at: map[string]bool{}, from: map[string]string{}}
	if b.hasHome() {
		args = append(args, "--bind", filepath.Join(c.Delivery, homeFolder), home)
	}
	if err := b.collect(); err != nil {
		return nil, err
	}
	args = append(args, b.args()...)
	args = append(args, "--bind", c.Work, c.Work, "--chdir", c.Work, "--setenv", "TMPDIR", "/tmp",
		"--remount-ro", "/dev")
	resolver, err := c.resolver()
	if err != nil {
		return nil, err
	}
	args = append(append(append(args, c.networkArgs()...), resolver...), "--remount-ro", "/", "--")
	if n := c.Reaches(); n != nil {
		args = append(args, c.enter(supervisor.EnterVerb, n.Listen())...)
	}
	return append(append(args, c.Path), c.Argv[1:]...), nil
}

// enterPath is where the sandbox shows the program that prepares its network.
const enterPath = "/run/passbook-call"

// enter is a command line of that program.
func (c Call) enter(args ...string) []string {
	return slices.Concat([]string{enterPath}, c.Supervisor[1:], args)
}

// networkArgs points programs at the proxy of an isolated call. The proxies of the host are out of reach.
func (c Call) networkArgs() (args []string) {
	if !c.Isolated() {
		return nil
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"} {
		args = append(args, "--unsetenv", name, "--unsetenv", strings.ToLower(name))
	}
	n := c.Reaches()
	if n == nil {
		return args
	}
	set := func(name, value string) { args = append(args, "--setenv", name, value) }
	const direct = "localhost,127.0.0.1,::1" // the loopback of the call, with the listed ports of the host
	proxy := fmt.Sprintf("http://127.0.0.1:%d", n.Proxy)
	for _, v := range [][2]string{{"HTTP_PROXY", proxy}, {"HTTPS_PROXY", proxy}, {"NO_PROXY", direct}} {
		set(v[0], v[1])
		set(strings.ToLower(v[0]), v[1])
	}
	set("NODE_USE_ENV_PROXY", "1") // Node.js from 22.21
	set("JAVA_TOOL_OPTIONS", strings.TrimSpace(c.value("JAVA_TOOL_OPTIONS")+fmt.Sprintf(" -Dhttp.proxyHost=127.0.0.1 "+
		"-Dhttp.proxyPort=%d -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=%[1]d", n.Proxy)))
	connect := strings.Join(c.enter(supervisor.ConnectVerb, strconv.Itoa(n.Proxy), "%h", "%p"), " ")
	set("GIT_SSH_COMMAND", cmp.Or(c.value("GIT_SSH_COMMAND"), "ssh")+" -o 'ProxyCommand="+connect+"'")
	return append(args, "--ro-bind", c.Supervisor[0], enterPath)
}

// resolver names the name server of a network that pasta connects.
func (c Call) resolver() ([]string, error) {
	if n := c.Reaches(); n == nil || n.Pasta == "" {
		return nil, nil
	}
	file := filepath.Join(c.Delivery, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver "+supervisor.DirectGateway+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("create the sandbox of a call: %w", err)
	}
	at, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		at = "/etc/resolv.conf"
	}
	return []string{"--ro-bind", file, at}, nil
}

// Reaches returns the network of an isolated call; nil: it has none, or that of the host.
func (c Call) Reaches() *supervisor.Network {
	named := Named(c.Environ)
	addresses := c.With(named).Addresses()
	if len(addresses) == 0 {
		return nil
	}
	n := supervisor.NewNetwork(addresses)
	n.Trusted = slices.Concat(c.Offered, named)
	if slices.Contains(addresses, Internet) {
		n.Pasta = c.Pasta
	}
	n.Upstream = supervisor.Upstream{HTTP: c.either("HTTP_PROXY"), HTTPS: c.either("HTTPS_PROXY"),
		No: c.either("NO_PROXY")}
	return n
}

// either returns the value of a variable, whose name may be in small letters.
func (c Call) either(name string) string {
	return cmp.Or(c.value(strings.ToLower(name)), c.value(name))
}

func (c Call) value(name string) string {
	for _, pair := range c.Environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func namespaceArgs() []string {
	return []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent",
		"--new-session", "--cap-drop", "ALL"}
}

// systemArgs shows the directories of the operating system. Links such as /bin stay links.
func systemArgs() (args []string) {
	for _, dir := range system() {
		fi, err := os.Lstat(dir)
		switch {
		case err != nil:
		case fi.Mode()&os.ModeSymlink != 0:
			if to, err := os.Readlink(dir); err == nil {
				args = append(args, "--symlink", to, dir)
			}
		default:
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	return append(args, maskArgs(masked())...)
}

// maskArgs hides files and directories.
func maskArgs(paths []string) (args []string) {
	for _, path := range paths {
		fi, err := os.Stat(path)
		switch {
		case err != nil:
		case fi.IsDir():
			args = append(args, "--tmpfs", path, "--remount-ro", path)
		default:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	return args
}

// kernelArgs shows the processes of the sandbox and some devices. Root may change settings of the kernel, such as the
// program for core dumps, without any capability, so everything else in /proc is read-only for it.
func kernelArgs() []string {
	args := []string{"--proc", "/proc", "--dev", "/dev"}
	if os.Geteuid() != 0 {
		return args
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return append(args, "--remount-ro", "/proc")
	}
	const write = 0o222
	for _, e := range entries {
		if slices.Contains([]string{"bus", "irq", "pressure", "sysvipc", "tty"}, e.Name()) {
			continue // read-only already, or nothing in it can be changed
		}
		if _, err := strconv.Atoi(e.Name()); err == nil || e.Type()&os.ModeSymlink != 0 {
			continue
		}
		if fi, err := e.Info(); err == nil && (fi.IsDir() || fi.Mode().Perm()&write != 0) {
			args = append(args, "--ro-bind", "/proc/"+e.Name(), "/proc/"+e.Name())
		}
	}
	return args
}

// binds collects the paths that a call sees in addition; at maps a path to whether it is writable, and from to what is
// shown there, if it is another path.
type binds struct {
	call Call
	home string
	at   map[string]bool
	from map[string]string
}

// hasHome reports whether the home directory can be replaced: it is not part of the system.
func (b *binds) hasHome() bool {
	return filepath.IsAbs(b.home) && !slices.ContainsFunc(system(), func(dir string) bool { return within(dir, b.home) })
}

func (b *binds) collect() error {
	for _, dir := range filepath.SplitList(b.call.value("PATH")) {
		if b.call.Mode != Strict || !within(dir, b.home) {
			b.read(dir)
		}
	}
	b.program(b.call.Path)
	if b.call.Files {
		for _, arg := range b.call.Argv[1:] {
			if fi, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) && fi.Mode().IsRegular() {
				b.at[filepath.Clean(arg)] = false
			}
		}
	}
	if b.call.Objects != "" {
		b.at[b.call.Objects] = false
	}
	for _, name := range readVariables() {
		b.file(b.call.value(name))
	}
	for _, path := range b.call.Read {
		b.set(path, false)
	}
	if b.call.Mode != Strict {
		for _, name := range cacheVariables() {
			b.set(b.call.value(name), true)
		}
	}
	err := b.ofHome()
	for _, path := range b.call.Write {
		b.set(path, true)
	}
	return err
}

// read shows a directory, unless that would show what is to be hidden.
func (b *binds) read(dir string) {
	if !filepath.IsAbs(dir) || b.exposes(dir) {
		return
	}
	if _, ok := b.at[filepath.Clean(dir)]; !ok {
		b.at[filepath.Clean(dir)] = false
	}
}

func (b *binds) file(path string) {
	if filepath.IsAbs(path) && !b.exposes(path) {
		b.at[filepath.Clean(path)] = false
	}
}

// set shows a path that the settings or a variable name.
func (b *binds) set(path string, write bool) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(b.home, rest)
	}
	if filepath.IsAbs(path) {
		b.at[filepath.Clean(path)] = write
	}
}

// exposes reports whether a directory contains the home, or what is hidden.
func (b *binds) exposes(dir string) bool {
	for _, hidden := range append([]string{b.home, b.call.Delivery}, b.call.Hidden...) {
		if hidden != "" && within(hidden, dir) {
			return true
		}
	}
	return slices.ContainsFunc([]string{"/", "/proc", "/sys", "/dev", "/run", "/tmp", "/var", "/home"},
		func(d string) bool { return d == filepath.Clean(dir) })
}

// program shows the program, and what is installed beside it. In the root of a checkout, other files are not of the
// program, but what the user works on.
func (b *binds) program(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	for _, p := range []string{path, real} {
		dir := filepath.Dir(p)
		if before, _, ok := strings.Cut(p, "/node_modules/"); ok {
			dir = before + "/node_modules"
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || b.exposes(dir) {
			b.at[p] = false
		} else {
			b.read(dir)
		}
	}
}

var unusual = lazyregexp.New(`[^A-Za-z0-9]`)

// ofHome shows what the table lists for the program.
func (b *binds) ofHome() error {
	if !b.hasHome() {
		return nil
	}
	for _, row := range Programs() {
		if row.Program != "" && row.Program != filepath.Base(b.call.Path) || b.call.Mode == Strict && !row.Strict {
			continue
		}
		for _, name := range row.Read {
			b.at[filepath.Join(b.home, name)] = false
		}
		names := strings.NewReplacer("{work}", unusual.ReplaceAllString(b.call.Work, "-"), "{folder}", Folder(b.call.Work))
		for _, name := range row.Write {
			if err := b.write(names.Replace(name), row.Tool); err != nil {
				return err
			}
		}
		if err := b.conversations(row, names.Replace(row.Root)); err != nil {
			return err
		}
		for name, of := range row.Copies {
			if err := b.copy(name, of); err != nil {
				return fmt.Errorf("copy %s to the sandbox of a call: %w", filepath.Join(b.home, name), err)
			}
		}
	}
	return nil
}

// conversations shows those of the working directory only.
func (b *binds) conversations(row Paths, root string) error {
	if row.Shared != "" {
		own := row.Shared + "/" + Folder(b.call.Work)
		if err := b.create(own+"/", ""); err != nil {
			return err
		}
		at := filepath.Join(b.home, row.Shared)
		b.at[at], b.from[at] = true, filepath.Join(b.home, own)
	}
	root = filepath.Join(b.home, root)
	if _, err := os.Stat(filepath.Dir(root)); row.Root == "" || b.call.Brief || err != nil {
		return nil
	}
	f, err := os.OpenFile(root, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // an earlier call may have left a link
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.call.Work)
	return errors.Join(err, f.Close())
}

// write shows a path of the home, and creates it if it is a directory of an existing one, or of a tool in PATH.
func (b *binds) write(name, tool string) error {
	b.at[filepath.Join(b.home, name)] = true
	return b.create(name, tool)
}

// create creates a directory in the home, as [Paths] documents. The name of a directory ends with a slash.
func (b *binds) create(name, tool string) error {
	first, _, _ := strings.Cut(name, "/")
	_, err := os.Stat(filepath.Join(b.home, first))
	if tool != "" {
		_, err = environ.LookPath(tool, b.call.Environ)
	}
	if err != nil || !strings.HasSuffix(name, "/") || b.call.Brief {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(b.home, name), 0o700); err != nil {
		return fmt.Errorf("create a directory for the sandbox of a call: %w", err)
	}
	return nil
}

// args returns the paths that exist, parents first.
func (b *binds) args() (args []string) {
	var paths []string
	for path := range b.at {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		from := cmp.Or(b.from[path], path)
		if _, err := os.Stat(from); err != nil || !b.at[path] && b.shown(path) {
			continue
		}
		how := "--ro-bind"
		if b.at[path] {
			how = "--bind"
		}
		args = append(args, how, from, path)
	}
	return args
}

// shown reports whether a read-only path is part of another one.
func (b *binds) shown(path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if write, ok := b.at[dir]; ok && !write {
			return true
		}
		if slices.Contains(system(), dir) {
			return true
		}
	}
	return slices.Contains(system(), path)
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	if path == "" || dir == "" {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
