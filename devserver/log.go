package main

import (
	"fmt"
	"os"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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

// levelled is the server's log on stderr (stdout belongs to the ready line), with a level that can change.
type levelled struct {
	log.Logger
	level zap.AtomicLevel
}

func newLog(level, format string) *levelled {
	l := zap.NewAtomicLevelAt(log.ParseZapLevel(level))
	if level == "never" {
		l.SetLevel(zapcore.FatalLevel)
	}
	encoder := zapcore.NewConsoleEncoder(log.DefaultZapEncoderConfig)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), l)
	return &levelled{Logger: log.NewZapLogger(zap.New(core)), level: l}
}

// hush drops the messages of services that shut down, each about another that has already stopped.
func (l *levelled) hush() { l.level.SetLevel(zapcore.FatalLevel) }
