import { defineConfig } from 'vitest/config'

// Whole browsers beside whole nodes: one file after the other.
export default defineConfig({
  test: { include: ['test/**/*.test.ts'], fileParallelism: false, testTimeout: 60_000, hookTimeout: 60_000 },
})
