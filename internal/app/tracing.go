package app

import (
	"os"
	"time"

	"ductor/internal/trace"
	"ductor/orchestrator"
)

// openTracer makes what sends spans and metrics, if the configuration names a collector.
func (a *App) openTracer() {
	t := a.cfg.Tracing
	if t.URL == "" {
		return
	}
	a.tracer = trace.New(trace.Options{
		URL: t.URL, Key: os.Getenv(t.KeyFrom), Version: a.Version, Content: t.Content, Now: time.Now, Log: a.Log,
		Hide: func(dir, text string) string { return a.secretsOf(dir).String(text) },
	})
}

// gateway is the gateway to agents, traced if the configuration wants that.
func (a *App) gateway() orchestrator.Gateway {
	if a.tracer == nil {
		return a.watched(a.service)
	}
	return a.watched(a.tracer.Wrap(a.service))
}
