package main

import (
	"fmt"

	"go.temporal.io/server/common/log"
)

func (o *options) checkLog() error {
	switch o.logLevel {
	case "debug", "info", "warn", "error", "never":
	default:
		return fmt.Errorf("--log-level %q: want debug, info, warn, error or never", o.logLevel)
	}
	switch o.logFormat {
	case "text", "pretty", "json":
	default:
		return fmt.Errorf("--log-format %q: want text, pretty or json", o.logFormat)
	}
	return nil
}

// logger writes to stderr: stdout belongs to the ready line.
func (o *options) logger() log.Logger {
	level, format := o.logLevel, "console"
	if level == "never" {
		level = "fatal"
	}
	if o.logFormat == "json" {
		format = "json"
	}
	return log.NewZapLogger(log.BuildZapLogger(log.Config{Level: level, Format: format}))
}
