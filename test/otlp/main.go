// Command otlp runs the OTLP receiver of the OpenTelemetry collector for a test. Its arguments are an address and a
// file. It listens on the address, and appends each call to the file as a line of JSON.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: otlp ADDRESS FILE")
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func serve(address, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	defer file.Close()
	var mu sync.Mutex
	write := func(raw []byte, err error) error {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			_, err = file.Write(append(raw, '\n'))
		}
		return err
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	traces, err := consumer.NewTraces(func(_ context.Context, t ptrace.Traces) error {
		return write((&ptrace.JSONMarshaler{}).MarshalTraces(t))
	})
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	metrics, err := consumer.NewMetrics(func(_ context.Context, m pmetric.Metrics) error {
		return write((&pmetric.JSONMarshaler{}).MarshalMetrics(m))
	})
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	settings := receivertest.NewNopSettings(factory.Type())
	ofTraces, err := factory.CreateTraces(ctx, settings, config, traces)
	if err != nil {
		return fmt.Errorf("make the receiver: %w", err)
	}
	ofMetrics, err := factory.CreateMetrics(ctx, settings, config, metrics)
	if err != nil {
		return fmt.Errorf("make the receiver: %w", err)
	}
	host := componenttest.NewNopHost()
	if err := errors.Join(ofTraces.Start(ctx, host), ofMetrics.Start(ctx, host)); err != nil {
		return fmt.Errorf("start the receiver: %w", err)
	}
	<-ctx.Done()
	return errors.Join(ofTraces.Shutdown(context.Background()), ofMetrics.Shutdown(context.Background()))
}
