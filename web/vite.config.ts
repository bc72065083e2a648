import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

/** Packs every script and style sheet once, as hard as gzip can: the node sends that file. */
const packed: Plugin = {
  name: 'packed',
  writeBundle: ({ dir }) => {
    const assets = join(dir!, 'assets')
    for (const name of readdirSync(assets).filter((n) => /\.(js|css)$/.test(n))) {
      writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
    }
  },
}

// The page is embedded into the binary from where it is built to. All
// addresses in it are relative, so that it also works below a sub-path.
export default defineConfig({
  base: './',
  plugins: [packed],
  build: {
    outDir: '../internal/api/httpapi/page/built/app',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the policy of the page knows no data: for scripts and styles
    modulePreload: { polyfill: false },
    target: 'es2022',
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: Object.fromEntries(
      ['/buckets', '/collections', '/functions', '/health', '/ready', '/admin', '/metrics', '/?q='].map((path) => [path, 'http://127.0.0.1:8080']),
    ),
  },
})
