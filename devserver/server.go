package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active"
	dataStore   = "sqlite" // of executions and of visibility
)

// server is the four Temporal services in this process, and the Web UI.
type server struct {
	temporal   temporal.Server
	ui         *http.Server // nil: headless
	address    string
	uiAddress  string
	namespaces []string
	log        *levelled
	certs      certFolder // empty: insecure
}

// start binds every port and starts the services; it returns before they answer.
func start(o options, db *database) (*server, error) {
	p, err := choosePorts(o)
	if err != nil {
		return nil, err
	}
	s := &server{address: join(o.ip, p.frontend), namespaces: o.namespaces, log: newLog(o.logLevel, o.logFormat)}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for name, port := range p.services() {
		hosts[name] = static.SingleLocalHost(join(o.ip, port))
	}
	security, err := o.security()
	if err != nil {
		return nil, err
	}
	s.certs = o.certs
	worker.SetBinaryChecksum(versionLine()) // otherwise the SDK of the system workers reads and hashes the whole program
	s.temporal, err = temporal.NewServer(append(security,
		temporal.WithConfig(serverConfig(o, db.sql, p)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(s.log),
		temporal.WithDynamicConfigClient(dynamicConfig(o.dynamic)),
	)...)
	if err != nil {
		return nil, fmt.Errorf("set up the server: %w", err)
	}
	if err := s.temporal.Start(); err != nil {
		return nil, fmt.Errorf("start the server on %s: %w", s.address, err)
	}
	if !o.headless {
		if err := s.startUI(o, p.ui); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

// security returns what keeps others out; nothing with --insecure.
func (o options) security() ([]temporal.ServerOption, error) {
	if o.certs == "" {
		return nil, nil
	}
	provider, err := o.certs.provider()
	if err != nil {
		return nil, err
	}
	return []temporal.ServerOption{
		temporal.WithTLSConfigFactory(provider),
		temporal.WithAuthorizer(newByRole()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return byCommonName{} }),
	}, nil
}

func (s *server) stop() error {
	s.log.hush()
	if s.ui != nil {
		if err := s.ui.Close(); err != nil {
			return errors.Join(fmt.Errorf("stop the Web UI: %w", err), s.temporal.Stop())
		}
	}
	if err := s.temporal.Stop(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return nil
}

func serverConfig(o options, db *config.SQL, p ports) *config.Config {
	address := join(o.ip, p.frontend)
	c := &config.Config{Services: map[string]config.Service{}}
	c.Global.Membership.MaxJoinDuration = 30 * time.Second
	c.Global.Membership.BroadcastAddress = o.ip
	c.Persistence = config.Persistence{
		DefaultStore:     dataStore,
		VisibilityStore:  dataStore,
		NumHistoryShards: int32(o.shards),
		DataStores:       map[string]config.DataStore{dataStore: {SQL: db}},
	}
	c.ClusterMetadata = &cluster.Config{
		FailoverVersionIncrement: 10,
		MasterClusterName:        clusterName,
		CurrentClusterName:       clusterName,
		ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
			Enabled: true, InitialFailoverVersion: 1, RPCAddress: address, ClusterID: uuid.NewString(),
		}},
	}
	c.DCRedirectionPolicy.Policy = "noop"
	c.Archival.History.State, c.Archival.Visibility.State = "disabled", "disabled"
	c.NamespaceDefaults.Archival.History.State, c.NamespaceDefaults.Archival.Visibility.State = "disabled", "disabled"
	c.PublicClient.HostPort = address
	for name, port := range p.services() {
		c.Services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: o.ip}}
	}
	return c
}

// startUI serves the Web UI.
func (s *server) startUI(o options, port int) error {
	s.uiAddress = join(o.uiIP, port)
	var err error
	if s.ui, err = s.newUI(o); err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.uiAddress)
	if err != nil {
		return fmt.Errorf("start the Web UI: %w", err)
	}
	go func() {
		if err := s.ui.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the Web UI ended: " + err.Error())
		}
	}()
	return nil
}

// ports of this process. Only the first two are for clients.
type ports struct{ frontend, ui, history, matching, worker int }

func (p ports) services() map[primitives.ServiceName]int {
	return map[primitives.ServiceName]int{
		primitives.FrontendService: p.frontend,
		primitives.HistoryService:  p.history,
		primitives.MatchingService: p.matching,
		primitives.WorkerService:   p.worker,
	}
}

// choosePorts finds the free ones, all held until all are found, and reports early which requested port is in use.
func choosePorts(o options) (p ports, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	take := func(flag, ip string, port int) (int, error) {
		l, err := net.Listen("tcp", join(ip, port))
		if err != nil {
			return 0, fmt.Errorf("%s %d: %w; stop what uses it, or choose another", flag, port, err)
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	if p.frontend, err = take("--port", o.ip, o.port); err != nil {
		return p, err
	}
	if !o.headless {
		if p.ui, err = take("--ui-port", o.uiIP, uiPort(o)); err != nil {
			return p, err
		}
	}
	for _, internal := range []*int{&p.history, &p.matching, &p.worker} {
		if *internal, err = take("internal port", o.ip, 0); err != nil {
			return p, err
		}
	}
	return p, nil
}

// uiPort is --port plus 1000, as everywhere in Temporal; 0 (any) stays 0.
func uiPort(o options) int {
	if o.uiPort != 0 || o.port == 0 {
		return o.uiPort
	}
	return min(o.port+1000, 65535)
}

func join(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }
