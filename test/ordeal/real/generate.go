package real

import (
	"fmt"
	"math/rand/v2"
)

// generate makes the script of a seed: users write, and between that things go wrong.
func generate(job Job) (script []string) {
	random := rand.New(rand.NewPCG(4, job.Seed))
	add := func(format string, args ...any) { script = append(script, fmt.Sprintf(format, args...)) }
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	kinds := []string{"text", "tool", "tool", "ask", "spawn", "file", "secret", "long"}
	add("owner picks %s", pick(agentNames[:]...))
	add("ann picks %s", pick(agentNames[:]...))
	prompts := 5 + random.IntN(4)
	for i := range prompts {
		who := pick("owner", "owner", "ann")
		add("%s says p%d %s", who, i, pick(kinds...))
		add("wait %dms", random.IntN(1500))
		switch random.IntN(10) {
		case 0:
			add("%s aborts", who)
		case 1, 2:
			add("%s %s", who, pick("allows", "denies"))
		}
		if random.IntN(2) == 0 {
			script = append(script, fault(job, random, pick))
		}
	}
	return script
}

func fault(job Job, random *rand.Rand, pick func(...string) string) string {
	faults := []string{
		"kill ductor", "kill ductor", "kill ductor", "kill agent", "kill runner", "kill ductor runner", "kill ductor agent",
		"kill runner agent", "kill ductor runner agent", "kill tool", "restart", "upgrade", "suspend ductor", "suspend all", "load",
		"network cut", fmt.Sprintf("network %s %dms", pick(string(refuse), string(stall), string(slow), string(lossy), string(chopped)), 500+random.IntN(4000)),
	}
	if job.Disk != diskOfMachine {
		faults = append(faults, "disk fills 3s", "disk read-only 2s")
	}
	if job.Disk == diskExt4 {
		faults = append(faults, "disk hangs 4s", "disk hangs 8s")
	}
	return pick(faults...)
}
