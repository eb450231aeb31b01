package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ductor/cli"
	"ductor/internal/health"
	"ductor/internal/trace"
	"ductor/orchestrator"
)

// Sources contains functions that return the data. All fields are required. Each scrape calls the functions, so they
// must be safe for concurrent use.
type Sources struct {
	Turns  func() []trace.Measure
	Live   func(context.Context) cli.Living
	Load   func(context.Context) (orchestrator.Load, error)
	Store  func() (bytes, commits int64)
	Outbox func() (waiting int, oldest time.Duration)
	Health func() health.State
	Calls  *Calls
	Log    *slog.Logger
}

const scrapeTimeout = 10 * time.Second

// Handler returns a handler for scrapes by Prometheus.
func Handler(s Sources) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Calls.total, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{s})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{Timeout: scrapeTimeout, MaxRequestsInFlight: 4})
}

type collector struct{ Sources }

// Describe implements prometheus.Collector. It describes no metrics, because the labels of some metrics are not known
// in advance.
func (*collector) Describe(chan<- *prometheus.Desc) {}

type metricWriter chan<- prometheus.Metric

// gauge writes the current value of a metric. labels contains a key, its value, the next key, and so on.
func (o metricWriter) gauge(name, help string, v float64, labels ...string) {
	o.value(prometheus.GaugeValue, name, help, v, labels...)
}

func (o metricWriter) counter(name, help string, v float64, labels ...string) {
	o.value(prometheus.CounterValue, name, help, v, labels...)
}

func (o metricWriter) value(kind prometheus.ValueType, name, help string, v float64, labels ...string) {
	keys, values := pairs(labels)
	o <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, keys, nil), kind, v, values...)
}

func pairs(labels []string) (keys, values []string) {
	for i := 0; i+1 < len(labels); i += 2 {
		keys, values = append(keys, labels[i]), append(values, labels[i+1])
	}
	return keys, values
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout/2)
	defer cancel()
	o := metricWriter(ch)
	for _, m := range c.Turns() {
		o.measure(m)
	}
	o.agents(c.Live(ctx))
	if load, err := c.Load(ctx); err != nil {
		c.Log.Warn("omitted the metrics of the store", "err", err)
	} else {
		o.load(load)
	}
	bytes, commits := c.Store()
	o.gauge("ductor_store_bytes", "Size of the database with its log.", float64(bytes))
	o.counter("ductor_store_commits_total", "Transactions committed since the start.", float64(commits))
	waiting, oldest := c.Outbox()
	o.gauge("ductor_outbox_waiting", "Calls to Telegram that wait for their turn.", float64(waiting))
	o.gauge("ductor_outbox_lag_seconds", "How long the oldest of them has waited.", oldest.Seconds())
	s := c.Health()
	for part, status := range map[string]health.Status{"polling": s.Polling, "store": s.Store} {
		up := 0.0
		if status == health.OK {
			up = 1
		}
		o.gauge("ductor_up", "Whether a part works, as /healthz says.", up, "part", part)
	}
}

func (o metricWriter) agents(l cli.Living) {
	type kind struct{ agent, state string }
	sessions, memory, seen := map[kind]int{}, map[string]int64{}, map[int]bool{}
	for _, s := range l.Sessions {
		k := kind{string(s.Agent), "idle"}
		if s.Busy {
			k.state = "busy"
		}
		sessions[k]++
		if s.PID == 0 || !seen[s.PID] { // if sessions share a process, count its memory once
			memory[k.agent] += s.Memory
		}
		seen[s.PID] = true
	}
	o.gauge("ductor_agent_processes", "Processes of agents, those included that start or end.", float64(l.Processes))
	for k, n := range sessions {
		o.gauge("ductor_agent_sessions", "Sessions of agents that live.", float64(n), "agent", k.agent, "state",
			k.state)
	}
	for agent, bytes := range memory {
		o.gauge("ductor_agent_memory_bytes", "Resident memory of agents and all they started, as far as it is known.",
			float64(bytes), "agent", agent)
	}
	o.gauge("ductor_agent_waiting_turns", "Turns that wait until the agent of another conversation ends.",
		float64(l.Waiting))
}

func (o metricWriter) load(l orchestrator.Load) {
	const turns = "Turns that run, or wait in the queue of their conversation."
	o.gauge("ductor_open_turns", turns, float64(l.Running), "state", "running")
	o.gauge("ductor_open_turns", turns, float64(l.Queued), "state", "queued")
	o.gauge("ductor_approvals_waiting", "Approvals and questions that wait for a user.", float64(l.Approvals))
	const jobs = "Scheduled jobs and webhooks."
	o.gauge("ductor_jobs", jobs, float64(l.Jobs), "state", "enabled")
	o.gauge("ductor_jobs", jobs, float64(l.JobsPaused), "state", "paused")
	o.gauge("ductor_job_runs_waiting", "Runs of jobs that have not ended.", float64(l.JobRuns))
}

// measure writes a series from package trace. It converts the name from OpenTelemetry's to Prometheus's convention:
// underscores instead of dots, and the unit as a suffix.
func (o metricWriter) measure(m trace.Measure) {
	var keys, values []string
	for _, l := range m.Labels {
		keys, values = append(keys, underscored(l.Key)), append(values, l.Value)
	}
	name := underscored(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if len(m.Bounds) == 0 {
		o <- prometheus.MustNewConstMetric(prometheus.NewDesc(name+"_total", m.Description+".", keys, nil),
			prometheus.CounterValue, m.Sum, values...)
		return
	}
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, bound := range m.Bounds {
		below += uint64(m.Buckets[i])
		buckets[bound] = below
	}
	o <- prometheus.MustNewConstHistogram(prometheus.NewDesc(name, m.Description+".", keys, nil), uint64(m.Count),
		m.Sum, buckets, values...)
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }
