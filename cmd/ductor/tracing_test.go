package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
)

// receiver starts OpenTelemetry's OTLP receiver, which scripts/otlp builds. It returns its address and its output
// file.
func receiver(t *testing.T) (url, file string) {
	t.Helper()
	program, err := filepath.Abs("../../test/otlp/otlp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("the receiver of OpenTelemetry is not built; run scripts/otlp")
	}
	address := unusedAddr(t)
	file = filepath.Join(t.TempDir(), "received")
	cmd := exec.Command(program, address, file)
	cmd.Stderr = testWriter{t}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address, file
		}
		if time.Now().After(deadline) {
			t.Fatal("the receiver does not listen")
		}
	}
}

// received contains the fields of OTLP's JSON that the test reads.
type received struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				TraceID, SpanID, ParentSpanID, Name string
				Attributes                          []struct {
					Key   string
					Value struct {
						StringValue string
						IntValue    string
					}
				}
			}
		}
	}
	ResourceMetrics []struct {
		ScopeMetrics []struct{ Metrics []struct{ Name string } }
	}
}

// The spans and metrics of a turn arrive at OpenTelemetry's receiver, with sizes and without content.
func TestSpansOfATurnArrive(t *testing.T) {
	url, file := receiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	town := newTown(t, func(cfg *config.Config) { cfg.Tracing.URL, cfg.Permissions.Mode = url, "bypass" })
	town.say(`a private question [[tool cmd="echo private output"]] [[text "a private answer"]] [[usage in=11 out=7]]`)
	town.awaitDone(1)
	town.stop()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "private") {
		t.Errorf("spans have content:\n%s", raw)
	}
	spans, attributes, metrics := map[string]string{}, map[string]string{}, map[string]bool{}
	traces := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		var r received
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		for _, of := range r.ResourceSpans {
			for _, s := range of.ScopeSpans[0].Spans {
				spans[s.Name] = s.ParentSpanID + "<" + s.SpanID
				traces[s.TraceID] = true
				for _, a := range s.Attributes {
					attributes[s.Name+" "+a.Key] = a.Value.StringValue + a.Value.IntValue
				}
			}
		}
		for _, of := range r.ResourceMetrics {
			for _, m := range of.ScopeMetrics[0].Metrics {
				metrics[m.Name] = true
			}
		}
	}
	turn, tool := spans["invoke_agent claude"], spans["execute_tool Bash"]
	if turn == "" || tool == "" || "<"+strings.Split(tool, "<")[0] != turn || len(traces) != 1 {
		t.Errorf("spans %v of %d traces", spans, len(traces))
	}
	for key, want := range map[string]string{
		"invoke_agent claude gen_ai.operation.name":      "invoke_agent",
		"invoke_agent claude gen_ai.provider.name":       "anthropic",
		"invoke_agent claude gen_ai.usage.output_tokens": "", "execute_tool Bash gen_ai.tool.name": "Bash",
		"execute_tool Bash ductor.tool.input.size": "", "execute_tool Bash ductor.tool.result.size": "",
	} {
		if got := attributes[key]; got == "" || want != "" && got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	if !metrics["gen_ai.client.token.usage"] || !metrics["gen_ai.client.operation.duration"] {
		t.Errorf("metrics %v", metrics)
	}
}
