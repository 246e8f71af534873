//go:build ignore

// Package s3store has the names that the server uses of its archive on Amazon S3. The embedded server has
// no archive.
package s3store

import (
	"errors"

	"go.temporal.io/server/common/archiver"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
)

// URIScheme is that of archives on Amazon S3.
const URIScheme = "s3"

var errLeftOut = errors.New("open an archive on Amazon S3: this server was built without it")

// NewHistoryArchiver returns an error.
func NewHistoryArchiver(persistence.ExecutionManager, log.Logger, metrics.Handler,
	*config.S3Archiver) (archiver.HistoryArchiver, error) {
	return nil, errLeftOut
}

// NewVisibilityArchiver returns an error.
func NewVisibilityArchiver(log.Logger, metrics.Handler, *config.S3Archiver) (archiver.VisibilityArchiver, error) {
	return nil, errLeftOut
}
