package app

import (
	"os"
	"time"

	"ductor/internal/trace"
	"ductor/orchestrator"
)

// openTracer makes what measures turns, if the configuration names a collector or has monitors asked.
func (a *App) openTracer() {
	t := a.cfg.Tracing
	if t.URL == "" && a.monitor == nil {
		return
	}
	a.tracer = trace.New(trace.Options{
		URL: t.URL, Key: os.Getenv(t.KeyFrom), Version: a.Version, Content: t.Content, Now: time.Now, Log: a.Log,
		Hide: func(dir, text string) string { return a.secretsOf(dir).String(text) },
	})
}

// gateway is the gateway to agents, with what the configuration knows of models, and traced if it wants that.
func (a *App) gateway() orchestrator.Gateway {
	var g orchestrator.Gateway = a.service
	if len(a.cfg.Models) > 0 {
		g = knowing{g, a.cfg.Models}
	}
	if a.tracer != nil {
		g = a.tracer.Wrap(g)
	}
	return a.watched(g)
}
