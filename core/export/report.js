const unpack=async id=>{const raw=document.getElementById(id).textContent.trim();
const bytes=Uint8Array.from(atob(raw),c=>c.charCodeAt(0));
const stream=new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
return new Response(stream).text()};
(async()=>{const code=document.createElement('script');
code.textContent=await unpack('library');document.head.append(code);
const all=JSON.parse(await unpack('figures'));
const ink=getComputedStyle(document.body).color;
const seen=new IntersectionObserver(found=>{for(const one of found){if(!one.isIntersecting)continue;
seen.unobserve(one.target);const figure=all[one.target.dataset.figure];
figure.layout.font={color:ink,family:'system-ui,sans-serif'};
Plotly.newPlot(one.target,figure.data,figure.layout,{responsive:true,displaylogo:false})}},
{rootMargin:'600px'});
document.querySelectorAll('.plot').forEach(place=>seen.observe(place));
addEventListener('beforeprint',()=>document.querySelectorAll('.plot').forEach(place=>{
if(!place.data){const figure=all[place.dataset.figure];
Plotly.newPlot(place,figure.data,figure.layout,{staticPlot:true})}}));
document.documentElement.dataset.ready='yes'})();
