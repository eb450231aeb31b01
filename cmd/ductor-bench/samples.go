package main

import (
	"math"
	"slices"
	"time"
)

type samples []time.Duration

// at returns the p-th percentile in milliseconds (nearest rank), or NaN if there are no samples.
func (s samples) at(p int) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := (p*len(sorted) + 99) / 100
	return ms(sorted[min(max(rank, 1), len(sorted))-1])
}

func (s samples) median() float64 { return s.at(50) }
func (s samples) max() float64    { return s.at(100) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
