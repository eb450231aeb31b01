package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Types for messages of OTLP in JSON. IDs are hexadecimal, and 64-bit integers are strings.

type value struct {
	String *string     `json:"stringValue,omitempty"`
	Int    *string     `json:"intValue,omitempty"`
	Double *float64    `json:"doubleValue,omitempty"`
	Array  *arrayValue `json:"arrayValue,omitempty"`
}

type arrayValue struct {
	Values []value `json:"values"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// attributes is a list of named values. The methods that add a value skip empty values.
type attributes []attribute

func (a *attributes) text(key, s string) {
	if s != "" {
		*a = append(*a, attribute{key, value{String: &s}})
	}
}

func (a attributes) get(key string) string {
	for _, one := range a {
		if one.Key == key && one.Value.String != nil {
			return *one.Value.String
		}
	}
	return ""
}

func (a *attributes) number(key string, n int64) {
	if n != 0 {
		s := strconv.FormatInt(n, 10)
		*a = append(*a, attribute{key, value{Int: &s}})
	}
}

func (a *attributes) amount(key string, f float64) {
	if f != 0 {
		*a = append(*a, attribute{key, value{Double: &f}})
	}
}

func (a *attributes) list(key, s string) {
	if s != "" {
		*a = append(*a, attribute{key, value{Array: &arrayValue{[]value{{String: &s}}}}})
	}
}

// Kinds and states of spans.
const (
	kindInternal = 1
	kindClient   = 3
	codeError    = 2
)

type status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type span struct {
	Trace      string     `json:"traceId"`
	ID         string     `json:"spanId"`
	Parent     string     `json:"parentSpanId,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      string     `json:"startTimeUnixNano"`
	End        string     `json:"endTimeUnixNano"`
	Attributes attributes `json:"attributes,omitempty"`
	Status     status     `json:"status"`
}

type resource struct {
	Attributes attributes `json:"attributes"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type resourceSpans struct {
	Resource resource     `json:"resource"`
	Scopes   []scopeSpans `json:"scopeSpans"`
}

type spansRequest struct {
	Resources []resourceSpans `json:"resourceSpans"`
}

// point contains the values of one series. A histogram uses Count, Sum, Buckets and Bounds. A sum uses Value.
type point struct {
	Attributes attributes `json:"attributes,omitempty"`
	Start      string     `json:"startTimeUnixNano"`
	Time       string     `json:"timeUnixNano"`
	Count      string     `json:"count,omitempty"`
	Sum        *float64   `json:"sum,omitempty"`
	Buckets    []string   `json:"bucketCounts,omitempty"`
	Bounds     []float64  `json:"explicitBounds,omitempty"`
	Value      *float64   `json:"asDouble,omitempty"`
}

type series struct {
	Points      []point `json:"dataPoints"`
	Temporality int     `json:"aggregationTemporality"` // always 2: values are counted from the start of the process
	Monotonic   bool    `json:"isMonotonic,omitempty"`
}

type metric struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Unit        string  `json:"unit"`
	Histogram   *series `json:"histogram,omitempty"`
	Sum         *series `json:"sum,omitempty"`
}

type scopeMetrics struct {
	Scope   scope    `json:"scope"`
	Metrics []metric `json:"metrics"`
}

type resourceMetrics struct {
	Resource resource       `json:"resource"`
	Scopes   []scopeMetrics `json:"scopeMetrics"`
}

type metricsRequest struct {
	Resources []resourceMetrics `json:"resourceMetrics"`
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// idOf returns an ID for a trace (16 bytes) or a span (8 bytes). The ID is a hash of a name, so that a turn has the
// same ID after a restart.
func idOf(bytes int, of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:bytes])
}
