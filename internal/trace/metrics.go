package trace

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"ductor/cli"
)

// Names of the metrics. These names, and the bounds of histograms, follow OpenTelemetry's conventions.
const (
	tokenUsage = "gen_ai.client.token.usage"
	duration   = "gen_ai.client.operation.duration"
	cost       = "ductor.cost"
	turns      = "ductor.turns"
)

func boundsOf(name string) []float64 {
	switch name {
	case tokenUsage:
		return []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	case duration:
		return []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	}
	return nil
}

// mostSeries limits the memory of metrics, because the number of models is unlimited.
const mostSeries = 200

// counted contains the values of a metric for one combination of attributes.
type counted struct {
	name       string
	attributes attributes
	count      int64
	sum        float64
	buckets    []int64
}

func (t *Tracer) measure(common attributes, agent string, r cli.Result, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	common.text("gen_ai.agent.name", agent)
	failed := slices.Clone(common)
	if r.Err != nil {
		failed.text("error.type", string(r.Err.Kind))
	}
	t.observeLocked(duration, failed, took.Seconds())
	used := r.Consumed.Usage
	for _, of := range []struct {
		kind string
		n    int64
	}{{"input", used.Input + used.CacheRead + used.CacheWrite}, {"output", used.Output}} {
		if of.n > 0 {
			typed := slices.Clone(common)
			typed.text("gen_ai.token.type", of.kind)
			t.observeLocked(tokenUsage, typed, float64(of.n))
		}
	}
	if r.Consumed.CostUSD > 0 {
		t.observeLocked(cost, common, r.Consumed.CostUSD)
	}
	var ended attributes
	ended.text("gen_ai.agent.name", agent)
	ended.text("ductor.outcome", finish(r))
	t.observeLocked(turns, ended, 1)
}

func described() []metric {
	return []metric{
		{Name: tokenUsage, Description: "Tokens of a turn", Unit: "{token}", Histogram: &series{Temporality: 2}},
		{Name: duration, Description: "Duration of a turn", Unit: "s", Histogram: &series{Temporality: 2}},
		{Name: cost, Description: "Cost of turns", Unit: "{USD}", Sum: &series{Temporality: 2, Monotonic: true}},
		{Name: turns, Description: "Turns that ended", Unit: "{turn}", Sum: &series{Temporality: 2, Monotonic: true}},
	}
}

// Label is an attribute of a Measure.
type Label struct{ Key, Value string }

// Measure contains the values of a metric for one combination of labels. Values are counted from the start of the
// process.
type Measure struct {
	Name, Description, Unit string
	Labels                  []Label // all series of a metric have the same label keys
	Count                   int64
	Sum                     float64
	Bounds                  []float64 // upper bounds of a histogram's buckets; nil for a sum
	Buckets                 []int64   // number of values in each bucket; there is one more bucket than Bounds
}

// labelsOf returns the label keys of a metric. If a series lacks an attribute, its label is empty.
func labelsOf(name string) []string {
	switch name {
	case tokenUsage:
		return []string{"gen_ai.agent.name", "gen_ai.request.model", "gen_ai.token.type"}
	case duration:
		return []string{"gen_ai.agent.name", "gen_ai.request.model", "error.type"}
	case turns:
		return []string{"gen_ai.agent.name", "ductor.outcome"}
	}
	return []string{"gen_ai.agent.name", "gen_ai.request.model"}
}

// Measures returns all series of all metrics.
func (t *Tracer) Measures() (all []Measure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range described() {
		for _, c := range t.series {
			if c.name != d.Name {
				continue
			}
			m := Measure{
				Name: d.Name, Description: d.Description, Unit: d.Unit, Count: c.count, Sum: c.sum,
				Bounds: boundsOf(c.name), Buckets: slices.Clone(c.buckets),
			}
			for _, key := range labelsOf(c.name) {
				m.Labels = append(m.Labels, Label{key, c.attributes.get(key)})
			}
			all = append(all, m)
		}
	}
	return all
}

func (t *Tracer) observeLocked(name string, a attributes, v float64) {
	raw, _ := json.Marshal(a) // a string can always be encoded
	key := name + string(raw)
	c := t.series[key]
	if c == nil {
		if len(t.series) >= mostSeries {
			return
		}
		c = &counted{name: name, attributes: a, buckets: make([]int64, len(boundsOf(name))+1)}
		t.series[key] = c
	}
	c.count++
	c.sum += v
	at, _ := slices.BinarySearch(boundsOf(name), v) // a value equal to a bound belongs to the lower bucket
	c.buckets[at]++
}

func (t *Tracer) metricsLocked(now time.Time) (all []metric) {
	for _, m := range described() {
		for _, c := range t.series {
			if c.name != m.Name {
				continue
			}
			p := point{Attributes: c.attributes, Start: nanos(t.began), Time: nanos(now)}
			sum := c.sum
			if m.Sum != nil {
				p.Value = &sum
				m.Sum.Points = append(m.Sum.Points, p)
				continue
			}
			p.Count, p.Sum, p.Bounds = strconv.FormatInt(c.count, 10), &sum, boundsOf(c.name)
			for _, n := range c.buckets {
				p.Buckets = append(p.Buckets, strconv.FormatInt(n, 10))
			}
			m.Histogram.Points = append(m.Histogram.Points, p)
		}
		if m.Sum != nil && len(m.Sum.Points) > 0 || m.Histogram != nil && len(m.Histogram.Points) > 0 {
			all = append(all, m)
		}
	}
	return all
}
