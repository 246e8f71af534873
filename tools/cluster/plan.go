package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const loopback = "127.0.0.1"

// process is one service of docker-compose.yml as a local process.
type process struct {
	Name  string
	Needs []string // processes that must have succeeded, or be ready, before
	Argv  []string
	Env   map[string]string // in addition to this process's environment
	Once  bool              // ends when its work is done; the others keep running
	Ready probe
	Grace time.Duration // time to end after a request to stop
}

// probe checks whether a process is ready. The zero probe always succeeds.
type probe struct {
	Command []string // exits with 0
	Dial    string   // a process listens there
}

func (p probe) set() bool { return p.Command != nil || p.Dial != "" }

// plan reads docker-compose.yml and returns its services as processes, in start order.
func plan(ctx context.Context, s settings) ([]process, error) {
	o, err := cli.NewProjectOptions([]string{filepath.Join(s.Root, "docker-compose.yml")}, cli.WithInterpolation(true),
		cli.WithResolvedPaths(true))
	if err != nil {
		return nil, err
	}
	p, err := o.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	t := translator{settings: s, services: p.Services}
	var out []process
	done := map[string]bool{}
	for len(done) < len(p.Services) {
		name := next(p.Services, done)
		processes, err := t.processes(p.Services[name])
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		out = append(out, processes...)
		done[name] = true
	}
	return out, nil
}

// next is the first service by name whose needs are done. There is one: LoadProject refuses cycles.
func next(services types.Services, done map[string]bool) string {
	ready := func(name string) bool {
		waits := func(need string) bool { return !done[need] }
		return !done[name] && !slices.ContainsFunc(slices.Collect(maps.Keys(services[name].DependsOn)), waits)
	}
	names := slices.Sorted(maps.Keys(services))
	return names[slices.IndexFunc(names, ready)]
}

// translator converts services to processes: host names become loopback, ports are moved, and paths inside a container
// become local paths.
type translator struct {
	settings
	services types.Services
}

// innerPorts are ports that the server opens for internal use. In a container they cannot conflict; here they are moved
// like the others.
var innerPorts = map[string]int{
	"FRONTEND_GRPC_PORT": 7233, "FRONTEND_HTTP_PORT": 7243, "FRONTEND_MEMBERSHIP_PORT": 6933, "HISTORY_GRPC_PORT": 7234,
	"HISTORY_MEMBERSHIP_PORT": 6934,
	"MATCHING_GRPC_PORT":      7235, "MATCHING_MEMBERSHIP_PORT": 6935, "WORKER_GRPC_PORT": 7239,
	"WORKER_MEMBERSHIP_PORT": 6939,
}

func (t translator) processes(s types.ServiceConfig) ([]process, error) {
	p := process{Name: s.Name, Needs: slices.Sorted(maps.Keys(s.DependsOn)), Env: t.environment(s), Ready: t.probe(s),
		Grace: 20 * time.Second}
	if s.StopGracePeriod != nil {
		p.Grace = time.Duration(*s.StopGracePeriod)
	}
	repository, _, _ := strings.Cut(s.Image, ":")
	switch repository {
	case "postgres":
		p.Argv = []string{
			"postgres", "-D", t.database(), "-c", "listen_addresses=" + loopback, "-c",
			"port=" + t.port("postgres", 5432), "-c", "unix_socket_directories=",
		}
		p.Env["PGHOST"], p.Env["PGPORT"] = loopback, t.port("postgres", 5432)
	case "temporalio/admin-tools":
		p.Once = true
		for _, arg := range s.Entrypoint {
			p.Argv = append(p.Argv, mounted(s, arg))
		}
	case "temporalio/server":
		p.Argv = []string{"temporal-server", "start"}
		for name, port := range innerPorts {
			p.Env[name] = strconv.Itoa(port + t.Offset)
		}
	case "temporalio/ui":
		p.Argv = []string{"temporal-ui-server", "--root", filepath.Join(t.Dir, "ui"), "--env", "docker", "start"}
		p.Env["TEMPORAL_UI_PORT"] = t.port(s.Name, 8080)
	case "passbook":
		return t.workers(p), nil
	default:
		return nil, fmt.Errorf("no local program is known for the image %s", s.Image)
	}
	return []process{p}, nil
}

// workers returns the configured number of workers. On one machine they share its state directory, so that each can
// take over from another.
func (t translator) workers(one process) []process {
	one.Argv = []string{filepath.Join(t.Root, "bin", "worker")}
	maps.Copy(one.Env, t.passbook())
	var out []process
	for n := range t.Workers {
		w := one
		w.Name = fmt.Sprintf("%s-%d", one.Name, n+1)
		out = append(out, w)
	}
	return out
}

// passbook configures the folders of worker and starter.
func (s settings) passbook() map[string]string {
	return map[string]string{
		"PASSBOOK_STATE_DIR": filepath.Join(s.Dir, "state"), "PASSBOOK_RUN_ROOT": filepath.Join(s.Dir, "runs"),
		"PASSBOOK_ENVIRONMENT": "cluster",
	}
}

// address is that of the server.
func (s settings) address() string { return loopback + ":" + strconv.Itoa(7233+s.Offset) }

func (s settings) database() string { return filepath.Join(s.Dir, "postgres", "data") }

// port returns the local port of a service: the one that Docker would publish, plus the offset.
func (t translator) port(service string, inside uint32) string {
	outside := int(inside)
	for _, p := range t.services[service].Ports {
		if p.Target == inside {
			outside, _ = strconv.Atoi(p.Published)
		}
	}
	return strconv.Itoa(outside + t.Offset)
}

// mounted returns the local path of a mounted file.
func mounted(s types.ServiceConfig, path string) string {
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind && v.Target == path {
			return v.Source
		}
	}
	return path
}

func (t translator) environment(s types.ServiceConfig) map[string]string {
	env := map[string]string{}
	for name, value := range s.Environment {
		if value != nil && *value != "" {
			env[name] = t.value(s, name, *value)
		}
	}
	return env
}

// host matches variables that contain a host by their names. Values do not suffice, because user and password equal the
// name of a service.
var host = regexp.MustCompile(`(^BIND_ON_IP|_HOST|_SEEDS)$`)

var hostAndPort = regexp.MustCompile(`^([a-z]+):([0-9]+)$`)

func (t translator) value(s types.ServiceConfig, name, value string) string {
	if host.MatchString(name) {
		return loopback
	}
	if m := hostAndPort.FindStringSubmatch(value); m != nil {
		inside, _ := strconv.Atoi(m[2])
		return loopback + ":" + t.port(m[1], uint32(inside))
	}
	if port, err := strconv.Atoi(value); err == nil && strings.HasSuffix(name, "_PORT") {
		return strconv.Itoa(port + t.Offset)
	}
	if before, port, ok := strings.Cut(value, loopback+":"); ok {
		n, _ := strconv.Atoi(port)
		return before + loopback + ":" + strconv.Itoa(n+t.Offset)
	}
	return mounted(s, value)
}

// probe returns the service's health check. A shell command is run as it is; nc, which may be missing here, is
// replaced.
func (t translator) probe(s types.ServiceConfig) probe {
	if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 {
		return probe{}
	}
	test := s.HealthCheck.Test
	if test[0] == "CMD-SHELL" {
		return probe{Command: []string{"sh", "-c", test[1]}}
	}
	inside, _ := strconv.Atoi(test[len(test)-1])
	return probe{Dial: loopback + ":" + t.port(s.Name, uint32(inside))}
}
