package realcli

import (
	"archive/zip"
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// services are what the tools reach: some at the loopback, others at another address of this host.
type services struct {
	t     *testing.T
	dir   string
	own   string // an address of this host beside the loopback
	index string // of Python packages, at the loopback
	plain string // HTTP
	https string // git
	ssh   string // git
	sql   string // PostgreSQL
}

// TestToolsInSandbox has the usual tools fetch in the sandbox of a call, with pasta and without.
func TestToolsInSandbox(t *testing.T) {
	host := sandbox.Examine()
	if host.Problem != "" {
		t.Skip(host.Problem)
	}
	s := serve(t)
	for name, row := range map[string]struct {
		program string   // which the row needs
		network []string // of the definition; empty: the default
		environ []string // of the operator
		script  string
		direct  bool // the program knows no proxy
	}{
		"npm": {program: "npm", script: `npm install --no-audit --no-fund is-odd@3.0.1 && test -d node_modules/is-odd`},
		"go": {program: "go", environ: []string{"GONOSUMDB=*"}, script: `printf 'module x\n\ngo 1.21\n' >go.mod
			GOFLAGS=-modcacherw GOMODCACHE=$PWD/mod go mod download rsc.io/quote@v1.5.2 && test -d mod/rsc.io`},
		"pip": {program: "python3", environ: []string{"PIP_INDEX_URL=http://" + s.index + "/simple"},
			script: `python3 -m pip install --disable-pip-version-check --target out greeting && test -e out/greeting.py`},
		"git over https": {program: "git", network: []string{s.https}, environ: []string{"GIT_SSL_CAINFO=" + s.dir + "/ca.pem"},
			script: `git clone https://` + s.https + `/project.git && test -e project/README`},
		"git over ssh": {program: "ssh", network: []string{sandbox.Internet, s.ssh}, environ: []string{"GIT_SSH_COMMAND=ssh -F none " +
			"-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i " + s.dir + "/key"},
			script: `git clone ssh://git@` + s.ssh + `/project.git && test -e project/README`},
		"java": {program: "javac", network: []string{s.plain},
			script: `cat >Fetch.java <<'END'
public class Fetch {
	public static void main(String[] a) throws Exception {
		try (var in = new java.net.URL(a[0]).openStream()) { System.out.write(in.readAllBytes()); }
		System.out.flush();
	}
}
END
java -Xshare:auto Fetch.java http://` + s.plain + `/ | grep -q heron`},
		"node": {program: "node", direct: true, environ: []string{"NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"},
			script: `node -e 'fetch("https://registry.npmjs.org/is-odd").then(r => process.exit(r.ok ? 0 : 1))'`},
		"node and a port of this host": {program: "node", network: []string{sandbox.Internet, s.index},
			script: `node -e 'fetch("http://` + s.index + `/simple/greeting/").then(r => process.exit(r.ok ? 0 : 1))'`},
		"PostgreSQL": {program: "psql", network: []string{sandbox.Internet, s.sql},
			script: `psql -h 127.0.0.1 -p ` + s.sql[strings.LastIndexByte(s.sql, ':')+1:] + ` -U tester -tc 'select 40 + 2' postgres | grep -q 42`},
	} {
		for _, pasta := range []string{host.Pasta, ""} {
			way := "without pasta"
			if pasta != "" {
				way = "with pasta"
			}
			t.Run(name+"/"+way, func(t *testing.T) {
				if _, err := exec.LookPath(row.program); err != nil {
					t.Skip(err)
				}
				if row.direct && pasta == "" {
					t.Skip("this program knows no proxy: it needs pasta")
				}
				network := row.network
				if network == nil {
					network = []string{sandbox.Internet}
				}
				held := sandbox.Call{Held: sandbox.Held{Mode: sandbox.Workspace, Network: network}, Bwrap: host.Bwrap,
					Pasta: pasta, Read: []string{s.dir + "/ca.pem", s.dir + "/key", pythonHome()}}
				exit, output := s.call(t, held, row.environ, row.script)
				require.Zero(t, exit.Code, output)
			})
		}
	}
}

// call runs a shell script in a sandbox, and returns what it printed.
func (s *services) call(t *testing.T, held sandbox.Call, environ []string, script string) (agent.Exit, string) {
	t.Helper()
	delivery := t.TempDir()
	work, home := filepath.Join(delivery, "work"), filepath.Join(delivery, "user")
	for _, dir := range []string{work, home} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(delivery, "prompt"), nil, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	var names []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	held.Delivery, held.Supervisor = delivery, []string{self, supervisor.Verb}
	c := agent.Command{
		Argv: []string{"sh", "-c", script}, Shell: true, Env: names, Dir: work, Mark: delivery, Timeout: 2 * time.Minute,
		Environment: append(environ, "PATH="+pythonHome()+"/bin:"+os.Getenv("PATH"), "HOME="+home),
		Prompt:      filepath.Join(delivery, "prompt"), Stdout: filepath.Join(delivery, "stdout"),
		Stderr: filepath.Join(delivery, "stderr"), Sandbox: &held,
	}
	p, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
	require.NoError(t, err)
	child, err := agent.Start(p, c)
	require.NoError(t, err)
	exit, err := child.Result()
	require.NoError(t, err)
	out, err := os.ReadFile(c.Stdout)
	require.NoError(t, err)
	errors, err := os.ReadFile(c.Stderr)
	require.NoError(t, err)
	return exit, string(out) + string(errors)
}

// pythonHome is the folder of the Python that the user has, which may be in the home.
func pythonHome() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.prefix)").Output()
	if err != nil {
		return "/usr"
	}
	return strings.TrimSpace(string(out))
}

func serve(t *testing.T) *services {
	t.Helper()
	s := &services{t: t, dir: t.TempDir(), own: ownAddress(t)}
	require.NoError(t, exec.Command("sh", "-ec", `git init -q "$0/project.git"; cd "$0/project.git"; echo x >README; git add README
		git -c user.name=Test -c user.email=test@localhost commit -qm Begin`, s.dir).Run())
	s.index = s.http("127.0.0.1", packageIndex(t))
	s.plain = s.http(s.own, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "heron") }))
	s.gitHTTPS()
	s.gitSSH()
	s.database()
	return s
}

// ownAddress is an address of this host beside the loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil && !ip.IsLoopback() {
			return ip.String()
		}
	}
	t.Skip("this host has no address beside the loopback")
	return ""
}

func (s *services) listen(ip string) net.Listener {
	s.t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	require.NoError(s.t, err)
	return l
}

func (s *services) http(ip string, h http.Handler) string {
	s.t.Helper()
	server := httptest.NewUnstartedServer(h)
	require.NoError(s.t, server.Listener.Close())
	server.Listener = s.listen(ip)
	server.Start()
	s.t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// packageIndex is a simple index (PEP 503) with one package.
func packageIndex(t *testing.T) http.Handler {
	t.Helper()
	var wheel bytes.Buffer
	z := zip.NewWriter(&wheel)
	for name, text := range map[string]string{
		"greeting.py":                     "word = 'heron'\n",
		"greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
		"greeting-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greeting-1.0.dist-info/RECORD":   "greeting.py,,\ngreeting-1.0.dist-info/METADATA,,\ngreeting-1.0.dist-info/WHEEL,,\n",
	} {
		f, err := z.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(f, text)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	const file = "greeting-1.0-py3-none-any.whl"
	mux := http.NewServeMux()
	mux.HandleFunc("/simple/greeting/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><a href="/%s">%[1]s</a>`, file)
	})
	mux.HandleFunc("/"+file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wheel.Bytes()) })
	return mux
}

func (s *services) gitHTTPS() {
	s.t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(s.t, err)
	server := httptest.NewUnstartedServer(&cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	require.NoError(s.t, server.Listener.Close())
	server.Listener = s.listen(s.own)
	server.TLS = serverCertificate(s.t, s.own, filepath.Join(s.dir, "ca.pem"))
	server.StartTLS()
	s.t.Cleanup(server.Close)
	s.https = server.Listener.Addr().String()
}

// gitSSH serves the repository as git's own server does, over SSH.
func (s *services) gitSSH() {
	s.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(s.t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "key"), pem.EncodeToMemory(block), 0o600))
	client, err := ssh.NewPublicKey(public)
	require.NoError(s.t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(s.t, err)
	conf := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.Marshal()) {
			return nil, fmt.Errorf("an unknown key")
		}
		return nil, nil
	}}
	conf.AddHostKey(signer)
	l := s.listen(s.own)
	s.t.Cleanup(func() { require.NoError(s.t, l.Close()) })
	s.ssh = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.session(c, conf)
		}
	}()
}

// session executes the one command of a connection: git-upload-pack.
func (s *services) session(c net.Conn, conf *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(c, conf)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range asked {
				if r.Type != "exec" {
					_ = r.Reply(r.Type == "env", nil)
					continue
				}
				_ = r.Reply(true, nil)
				cmd := exec.Command("git", "-c", "safe.directory=*", "upload-pack", filepath.Join(s.dir, "project.git"))
				cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
				in, err := cmd.StdinPipe()
				if err != nil || cmd.Start() != nil {
					return
				}
				go func() { _, _ = io.Copy(in, channel); _ = in.Close() }()
				code := byte(0)
				if cmd.Wait() != nil {
					code = 1
				}
				_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, code})
				_ = channel.Close()
			}
		}()
	}
}

// database starts a PostgreSQL server at the loopback, as a user that is not root.
func (s *services) database() {
	s.t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	require.NoError(s.t, err)
	l := s.listen("127.0.0.1")
	s.sql = l.Addr().String()
	require.NoError(s.t, l.Close())
	if len(found) == 0 {
		return
	}
	bin, data := filepath.Dir(found[len(found)-1]), filepath.Join(s.dir, "data")
	attributes := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		const nobody = 65534
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		require.NoError(s.t, os.Mkdir(data, 0o700))
		require.NoError(s.t, os.Chown(data, nobody, nobody))
		for dir := s.dir; dir != "/"; dir = filepath.Dir(dir) {
			if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&1 == 0 {
				require.NoError(s.t, os.Chmod(dir, fi.Mode().Perm()|1))
			}
		}
	}
	run := func(args ...string) {
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		cmd.SysProcAttr, cmd.Dir = attributes, "/"
		out, err := cmd.CombinedOutput()
		require.NoError(s.t, err, "%s", out)
	}
	run("initdb", "-D", data, "-U", "tester", "--auth=trust", "--no-sync")
	_, port, err := net.SplitHostPort(s.sql)
	require.NoError(s.t, err)
	run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(data, "log"), "-o", "-h 127.0.0.1 -k '' -p "+port, "start")
	s.t.Cleanup(func() { run("pg_ctl", "-D", data, "-m", "immediate", "stop") })
}

// serverCertificate makes the certificate of a server, and writes the file of the authority that its clients trust.
func serverCertificate(t *testing.T, ip, file string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(ip)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o644))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
}
