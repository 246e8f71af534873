//go:build ignore

// Package gcloud has the names that the server uses of its archive on Google Cloud Storage. The embedded server has
// no archive.
package gcloud

import (
	"errors"

	"go.temporal.io/server/common/archiver"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
)

// URIScheme is that of archives on Google Cloud Storage.
const URIScheme = "gs"

var errLeftOut = errors.New("open an archive on Google Cloud Storage: this server was built without it")

// NewHistoryArchiver returns an error.
func NewHistoryArchiver(persistence.ExecutionManager, log.Logger, metrics.Handler,
	*config.GstorageArchiver) (archiver.HistoryArchiver, error) {
	return nil, errLeftOut
}

// NewVisibilityArchiver returns an error.
func NewVisibilityArchiver(log.Logger, metrics.Handler, *config.GstorageArchiver) (archiver.VisibilityArchiver, error) {
	return nil, errLeftOut
}
