import { render } from 'preact'
import 'uplot/dist/uPlot.min.css'
import './style/base.css'
import './style/query.css'
import './style/pages.css'
import { App } from './app'

render(<App />, document.getElementById('app')!)
