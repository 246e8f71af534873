// Command reduce prepares the source of a Temporal server without the parts that Passbook never uses: archives in the
// clouds of Amazon and Google, workers that the server starts there or in Kubernetes, databases other than SQLite,
// clusters of servers that find each other, and mocks for tests. They are half of the packages that the server imports,
// and more than half of the program.
//
// It copies the modules of [parts] from the module cache, exchanges the named packages, and prints the path of a
// go.work with which the go command uses the copies:
//
//	GOWORK=$(go -C devserver run ./reduce) go -C devserver build
//
// The copies are in the user's cache. Their path depends on the versions of the modules and on parts, so that the go
// command compiles them once.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const server, scaler = "go.temporal.io/server", "go.temporal.io/auto-scaled-workers"

// part is a package. The Go files that match without are removed, and text is added unless it is empty.
type part struct {
	module, pkg string
	without     []string
	text        string
}

var parts = []part{
	{server, "common/archiver/s3store", []string{"*.go"}, fmt.Sprintf(archive, "s3store", "s3", "S3Archiver")},
	{server, "common/archiver/gcloud", []string{"*.go"}, fmt.Sprintf(archive, "gcloud", "gs", "GstorageArchiver")},
	{server, "common/persistence/visibility/store/elasticsearch/client", []string{"aws.go"}, elasticsearch},
	{scaler, "wci/workflow/compute_provider", []string{"aws*.go", "gcp*.go", "k8s.go"}, computeProvider},
	{server, "common/persistence/sql/sqlplugin/mysql", []string{"*.go"}, mysql},
	{server, "common/persistence/sql/sqlplugin/postgresql", []string{"*.go"}, postgresql},
	{server, "common/persistence/cassandra", []string{"*.go"}, cassandra},
	{server, "common/membership/ringpop", []string{"*.go"}, ringpop},
	{server, "service/history/shard", []string{"context_testutil.go"}, ""},
	{server, "service/history/workflow", []string{"test_util.go"}, ""},
}

// mocks are files in all packages of the server.
const mocks = "*_mock.go"

// archive has the names that the server uses of an archive.
const archive = `package %s

import (
	"errors"

	"go.temporal.io/server/common/archiver"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
)

const URIScheme = %q

var errLeftOut = errors.New("open an archive in a cloud: this server was built without it")

func NewHistoryArchiver(persistence.ExecutionManager, log.Logger, metrics.Handler, *config.%s) (archiver.HistoryArchiver, error) {
	return nil, errLeftOut
}

func NewVisibilityArchiver(log.Logger, metrics.Handler, *config.%[3]s) (archiver.VisibilityArchiver, error) {
	return nil, errLeftOut
}
`

const elasticsearch = `package client

import "net/http"

func NewAwsHttpClient(ESAWSRequestSigningConfig) (*http.Client, error) { return nil, nil }
`

// computeProvider has the names of Google Cloud Run that the server's start mentions.
const computeProvider = `package computeprovider

import "context"

type (
	GCPImpersonationChainProvider interface {
		ResolveChain(context.Context, ResolveChainInput) ([]string, error)
	}
	ResolveChainInput                 struct{}
	NoopGCPImpersonationChainProvider struct{}
)

func SetGCPImpersonationChainProvider(GCPImpersonationChainProvider) {}

func (NoopGCPImpersonationChainProvider) ResolveChain(context.Context, ResolveChainInput) ([]string, error) {
	return nil, nil
}
`

const mysql = `package mysql

const PluginName = "mysql8"
`

const postgresql = `package postgresql

const (
	PluginName    = "postgres12"
	PluginNamePGX = "postgres12_pgx"
)
`

const cassandra = `package cassandra

import (
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/resolver"
)

func VerifyCompatibleVersion(config.Persistence, resolver.ServiceResolver, log.Logger) error { return nil }

func NewFactory(
	config.Cassandra, resolver.ServiceResolver, string, log.Logger, metrics.Handler, serialization.Serializer,
) persistence.DataStoreFactory {
	panic("open Cassandra: this server was built without it")
}
`

// ringpop is the membership of a server without static hosts.
const ringpop = `package ringpop

import (
	"errors"

	"go.uber.org/fx"
)

var MembershipModule = fx.Error(errors.New("join a cluster: this server was built without it"))
`

func main() {
	cache, err := os.UserCacheDir()
	var work string
	if err == nil {
		work, err = reduce(".", filepath.Join(cache, "passbook", "server-source"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reduce the Temporal server's source:", err)
		os.Exit(1)
	}
	fmt.Println(work)
}

// reduce returns the path of the go.work for the module in dir. It makes the copies below cache unless they exist. Each
// checkout has its own go.work beside them.
func reduce(dir, cache string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "mod", "download", "-json", server, scaler)
	cmd.Dir, cmd.Stderr, cmd.Env = dir, os.Stderr, append(os.Environ(), "GOWORK=off") // versions of the module itself
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download: %w\n%s", err, out)
	}
	from, key := map[string]string{}, fmt.Sprint(parts, mocks)
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err != nil {
			return "", err
		}
		from[m.Path], key = m.Dir, key+m.Path+m.Version
	}
	copies := filepath.Join(cache, digest(key))
	if _, err := os.Stat(copies); errors.Is(err, fs.ErrNotExist) {
		if err := create(from, copies); err != nil {
			return "", err
		}
	}
	work := filepath.Join(copies, "work-"+digest(dir))
	version := strings.Fields(strings.TrimPrefix(runtime.Version(), "go"))[0]
	text := fmt.Appendf(nil, "go %s\n\nuse %q\n", version, dir)
	for _, module := range []string{server, scaler} {
		text = fmt.Appendf(text, "\nreplace %s => %q\n", module, filepath.Join(copies, module))
	}
	path := filepath.Join(work, "go.work")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return path, nil
	}
	next := fmt.Sprintf("%s.%d", path, os.Getpid())
	err = errors.Join(os.MkdirAll(work, 0o700), os.WriteFile(next, text, 0o600))
	return path, errors.Join(err, os.Rename(next, path))
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }

// create makes the copies in another folder, which gets its name when it is complete.
func create(from map[string]string, copies string) error {
	if err := os.MkdirAll(filepath.Dir(copies), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(copies), filepath.Base(copies)+".")
	if err != nil {
		return err
	}
	for module, dir := range from {
		err = errors.Join(err, os.CopyFS(filepath.Join(work, module), os.DirFS(dir)))
	}
	err = errors.Join(err, removeAll(filepath.Join(work, server), mocks))
	for _, p := range parts {
		err = errors.Join(err, exchange(p, filepath.Join(work, p.module, p.pkg)))
	}
	if err == nil {
		err = os.Rename(work, copies)
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		err = nil
	}
	return errors.Join(err, os.RemoveAll(work))
}

// removeAll removes the files below dir that match a pattern.
func removeAll(dir, pattern string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		match, err := filepath.Match(pattern, e.Name())
		if match {
			err = os.Remove(path)
		}
		return err
	})
}

// exchange changes the package in the folder pkg. Each pattern must match: a new version may have other files.
func exchange(p part, pkg string) error {
	for _, pattern := range p.without {
		names, err := filepath.Glob(filepath.Join(pkg, pattern))
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("no file of %s matches %s in this version; correct the table in devserver/reduce", p.pkg, pattern)
		}
		for _, name := range names {
			err = errors.Join(err, os.Remove(name))
		}
		if err != nil {
			return err
		}
	}
	if p.text == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(pkg, "reduced.go"), []byte(p.text), 0o600)
}
